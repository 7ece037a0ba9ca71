// Package tasks is the spine of errand: what a task is, the only way in (Desk), and the flow from there to the posted answer
// (process.go, the file to read first). It knows no product: Slack, GitHub and chat are sources in folders of their own.
//
// It promises that a submitted task is run to exactly one ending, that the ending is told where the task came from, and that
// nothing of a run is alive when its delivery is given back to the queue. It does not promise at-most-once execution: a run whose
// worker died is started again, by design, and goes on from its checkpoint, which may be minutes old.
//
// A Desk may be used from any goroutine of any process; a Worker is started once. The calls into a Source and its Reports are
// described at the interfaces.
package tasks
