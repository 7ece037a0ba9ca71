// Package tasks is the domain of errand: tasks, the [Desk] through which they come in, the [Source] and [Report] interfaces that
// connect products, endings, limits, budgets and costs. Package tasks/worker runs the tasks; read its process.go first. Slack,
// GitHub and chat are sources in packages of their own.
//
// The package promises that a submitted task is stored once per ID, that it gets exactly one ending, and that it gets a delivery
// even if the submitter dies before it has enqueued the task. It does not promise at-most-once execution: a task whose worker died
// runs again and resumes from its checkpoint, which may be minutes old.
//
// A [Desk] and a [Queue] are safe for concurrent use by any number of processes on one Redis. The comments of [Source] and [Report] say
// which of their methods are called from which goroutine.
package tasks
