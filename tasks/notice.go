package tasks

// Notice is what has come of a task on a pull request, for where that is told instead of on the pull request.
type Notice struct {
	Task   Task
	Ending Ending
	Pull   Pull   // notices of one pull request stand together
	Said   string // what has come of it, in one line
	Body   string // the same at length, in Markdown
	Quiet  bool   // it has nothing new: nobody misses it where something was said of the pull request before
}
