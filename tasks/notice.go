package tasks

import "github.com/errand-fleet/errand/forge"

// Notice reports the result of a task on a pull request, for a repository whose results are shown elsewhere than on the pull request.
type Notice struct {
	Task        Task
	Ending      Ending
	PullRequest forge.PullRequest // the notices of one pull request are shown together
	Headline    string            // the result in one line
	Body        string            // the whole result, in Markdown
	Quiet       bool              // nothing is new: it can be left out if the pull request has a notice already
}
