// Package github is the source of what happens on GitHub: a pull request that opens or moves becomes a review, told by a check
// run (a commit status where we have only a token), one review with a comment at each line where something was found, and one comment
// that sums it up.
//
// It promises:
//   - An event counts only with a right X-Hub-Signature-256, and is answered within 6 s of its arrival, whatever Redis and GitHub do.
//   - Nothing of a fork is run, nor of a draft or a bot; whether that still holds is asked again before the run.
//   - What others wrote reaches the agent as quoted material, without what a reader of the page would not see. What the agent
//     wrote reaches the page whole, and pings nobody.
//   - A comment counts when it mentions us, outside of code and quotes, or begins with a command; it is the same task however often it is
//     delivered, and never if we wrote it, or a bot that is not listed. Whether its author may write to the repository is asked before anything runs.
//   - To a repository that is only watched nothing is written: what comes of it is told on a Board.
//   - What the agent says and asks on its way is a comment of its own, which is there once; whoever may write may answer it, first come. Bots that are
//     listed give orders, and those count as work that comes by itself.
//   - Each request in a comment gets one answer where it was made (for several in one run: in the conversation), found again by its mark, and
//     the comment a sign of how it ended. What was written or edited after the request does not reach the agent.
//   - A review has at most six comments, all inside the diff of the head that was reviewed; if that is not the head any more, none. What
//     cannot stand at a line is in the summary. A review is found again by its mark and never submitted twice.
//   - No finding is posted twice, and none that people have dismissed or answered. Threads are ended that are ours and whose finding is mended.
//   - There is one summary per pull request (with further ones where it does not fit). It is edited, not repeated; an older
//     task never replaces the word of a newer one, and a failure never replaces a review.
//   - No review ends as a failure of the commit: for our own problems a check is neutral and a status success, with the reason. (A
//     check that ends as timed_out or cancelled does hold up a merge that requires it; a status never does.)
//   - Published work has one open pull request per branch, a draft where the repository has drafts. Only its description is edited, and of that
//     our own part; nothing is merged, approved, closed or marked ready.
//   - No answer of GitHub's is waited for longer than 10 s, and nothing that creates is sent twice without looking first.
//
// It does not promise to hear of every event: GitHub does not repeat a delivery that failed. The account or App should be errand's
// own, because its pull requests and pushes are left alone.
//
// A Source may be used from any goroutine of any process. Of a report, Update is called from one goroutine at a time and never
// blocks; Close may run beside it. A report has one goroutine, which ends with Close or with the context given to Open.
//
// App.Manifest lists the permissions and events that the App needs, and Examine looks whether it has them.
package github
