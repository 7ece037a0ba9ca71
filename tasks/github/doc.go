// Package github is the task source for GitHub. It turns an opened or updated pull request into a review, which is
// reported by a check run (a commit status if errand has only a token), one review with a comment on the line of each
// finding, and one summary comment.
//
// It promises:
//   - An event counts only with a correct X-Hub-Signature-256. It is answered within 6 s of its arrival, even if Redis
//     or GitHub is slow.
//   - Code from a fork is not run, and drafts and bots' pull requests are not reviewed. Both are checked again before
//     the run.
//   - Text by others reaches the agent as quoted material, without the parts that a page does not show. The agent's
//     text reaches the page whole and notifies no one.
//   - A comment counts if it mentions errand, outside of code and quotes, or begins with a command. All its deliveries
//     give the same task. Comments by errand and by bots that are not listed are ignored. The author's write access is
//     checked before anything runs.
//   - Nothing is written to a repository that is only watched. Results are posted on a Board.
//   - The agent's updates and questions are separate comments, each posted once. Any person with write access may
//     answer; the first answer counts. Listed bots can request work, which counts as automatic work.
//   - Each request in a comment gets one answer where it was made (in the conversation, for several requests in one
//     run), found again by its marker. The comment gets a reaction that shows the result. The agent does not see text
//     that was written or edited after the request.
//   - A review has at most six comments by default, all inside the diff of the reviewed head, and none if the head has
//     moved. Findings without a line are in the summary. A review is found again by its marker and never submitted
//     twice.
//   - No finding is posted twice, nor again after people have dismissed or answered it. errand resolves its own threads
//     when the finding is fixed.
//   - There is one summary per pull request, continued in further comments if it does not fit. It is edited, not
//     repeated. An older task never replaces the text of a newer one, and a failure never replaces a review.
//   - No review marks the commit as failed: if errand has a problem, a check run is neutral and a status is success,
//     with the reason. (A check run that ends as timed_out or cancelled blocks a merge that requires it; a status never
//     does.)
//   - Published work has one open pull request per branch, a draft if the repository supports drafts. errand edits only
//     its own part of the description; it never merges, approves, closes or marks a pull request ready.
//   - No request to GitHub lasts longer than 10 s, and creation is not repeated without looking for the result first.
//
// It does not promise to receive every event: GitHub does not repeat a failed delivery. Use a dedicated account or App,
// because its pull requests and pushes are not reviewed.
//
// A Source may be used from any goroutine of any process. A report's Update is called from one goroutine at a time and
// never blocks; Close may run concurrently. A report has one goroutine, which ends with Close or with the context given
// to Open.
//
// App.Manifest lists the permissions and events that the App needs, and Examine checks that it has them.
package github
