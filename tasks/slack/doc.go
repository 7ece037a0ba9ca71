// Package slack is the source of what people ask for in Slack. A mention of the bot becomes a task; its thread shows a status message
// while the task runs, and then the answer.
//
// It promises:
//   - An event counts only with a right signature that is not older than 5 minutes, or on a connection that we have opened (Socket Mode), and
//     is answered within 3 s whatever Redis and Slack do. Only what is stored is answered with 200, or acked, so that Slack sends the rest
//     again: an ack before that would be fast and could lose a request, while one that comes too late costs a repetition, which finds
//     its task.
//   - A connection of Socket Mode that ends, that is silent for 30 s, or that brings no event for 5 minutes is replaced, the latter before it
//     is closed. Slack repeats an event for some 6 minutes.
//   - A mention is one task, however often and in whatever form its event is delivered: the task's ID is the message's.
//   - Who is not allowed to ask starts nothing, and where we cannot know who somebody is, nothing is started. We do not talk to bots that are
//     not listed, nor to ourselves.
//   - Nobody has to be mentioned in a direct message, and in a thread that had a task: a reply is for us unless it mentions somebody else.
//   - A word such as stop, or ❌ on a request, is obeyed when it comes from who asked or from an approver. An old one that comes again
//     changes nothing.
//   - A task that names a pull request works at its head. A stranger's code is read and not run, whatever is said of it later in the thread.
//   - The files of a message are fetched from Slack's own hosts alone, and never keep a run from starting.
//   - A request is what its author last made of it, until somebody has begun it; from then on an edit is one more message to the thread.
//   - A thread is one conversation. What others said in it reaches the agent as quoted material.
//   - While the agent waits for an answer, the next message in the thread by the person who asked for the task is that answer, and no
//     task; it gets a ✅.
//   - The final message is posted once, whole, in as many parts as it takes: each carries a marker in its metadata, by which the next
//     attempt, in any process, finds what an earlier one has posted. A task that is tried again has another ending, and says it.
//   - A notice of a pull request is told once, in the thread of the first one, whatever gets lost on the way; a request there is about that pull request.
//   - Nobody is pinged but the person who asked, by a question and by the final message, and no link of the agent's is fetched by Slack.
//   - A button does something for who asked for its task, and for those who may approve it; others are told so, alone. Slack has its answer
//     before it is done, and sends no press again: one that cannot be dealt with is shown to who pressed as one that failed.
//
// What the agent says, asks and attaches on its way is posted once or not at all: nobody tries again after a lost answer. Short pauses
// that Slack wants are waited for.
//
// It does not promise that the status message is up to date, or that there is one: it may fail in any way and fails nothing. What
// Slack refuses for good (the channel is archived, the request was deleted) is logged and given up.
//
// A Source may be used from any goroutine of any process; Listen is called once. Of a report, Update is called from one goroutine at
// a time and never blocks; Close may run beside it. A report has at most one goroutine, which ends with Close or with the context
// given to Open. What Listen starts ends with its context: at most background calls and pressing buttons; one that looks for requests whose
// authors have had the time to choose a repository; and for Socket Mode the keeper of the connection, a reader for each (there are two for a
// moment when one is replaced), and at most taking events under way to the desk.
//
// Manifest lists the scopes and events that the app needs, and Examine looks whether it has them.
package slack
