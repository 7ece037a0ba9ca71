// Package slack is the source of requests in Slack. A mention of the bot becomes a task; its thread shows a status message while the task
// runs, and then the answer.
//
// It promises:
//   - An event counts only with a valid signature that is at most 5 minutes old, or on a connection that errand opened (Socket Mode). It is
//     answered within 3 s whatever Redis and Slack do, and only with 200 or an acknowledgement once it is stored, so that Slack sends it
//     again otherwise.
//   - A connection in Socket Mode is replaced when it ends, when it is silent for 30 s, or when it brings no event for 5 minutes, in the
//     last case before it is closed. Slack repeats an event for some 6 minutes.
//   - A mention is one task, however often and in whatever form its event arrives: the task's ID is the message's.
//   - Nothing starts for a user who may not ask, or whom Slack does not identify. Bots that are not listed, and the bot itself, get no
//     answer.
//   - In a direct message, and in a thread that had a task, the bot need not be mentioned: a reply is for it unless it mentions others.
//   - A command such as stop, or ❌ on a request, counts if it comes from the person who asked or from an approver. A late repetition of its
//     event changes nothing.
//   - A task that names a pull request works at its head. Code of strangers is read and not run, whatever the thread says later.
//   - Files of messages are downloaded only from Slack's own hosts. A failed download does not keep a run from starting.
//   - A request is what its author last made of it, until its run starts; after that an edit is one more message to the thread.
//   - A thread is one conversation. What others said in it reaches the agent as quoted material.
//   - While the agent waits for an answer, the next message in the thread from the person who asked for the task is that answer, and not a
//     task; it gets a ✅.
//   - The final message is posted once and complete, in as many parts as it takes: each carries a marker in its metadata, by which the next
//     attempt, in any process, finds it. A task that is retried has another ending and another final message.
//   - A notice of a pull request is posted once, in the thread of the first one. A request there is about that pull request.
//   - Questions and final messages notify only the person who asked, and Slack follows no link of the agent's.
//   - Buttons work for the person who asked and for approvers; others get a refusal that only they see. Slack does not send a press
//     again: one that fails is shown as failed to the person who pressed.
//
// Messages, questions and files that the agent posts while it works are posted at most once; a lost answer of Slack is not tried again.
// Short rate limits are waited for.
//
// It does not promise that the status message is up to date, or exists: its failures fail nothing. What Slack refuses for good (the channel
// is archived, the request was deleted) is logged and given up.
//
// A Source may be used from any goroutine of any process; Listen is called once. Update of a report is called from one goroutine at a time
// and never blocks; Close may run beside it. A report has at most one goroutine, which ends with Close or with the context given to Open.
// Everything that Listen starts ends with its context: calls in the background and, for Socket Mode, the keeper of the connection and its
// readers.
//
// Manifest lists the scopes and events that the app needs, and Diagnose checks that it has them.
package slack
