// Package worker runs tasks. A [Worker] takes deliveries from the queues, claims the thread of each task, supervises one run of the
// agent, publishes its work, and stores and posts the ending. The file process.go has the whole flow; read it first. The other files
// have one step or one background loop each.
//
// The package promises:
//   - At most one live run per thread in the fleet, by the store's claims. asynq's lease and retries are not used for this.
//   - When a delivery is given back to asynq, no process of its run is alive, and its ending is stored or nothing was started.
//   - A final message that could not be posted is posted later by some worker, and a task whose worker died is run again by another
//     one, or ended after its third crash.
//   - A worker whose CLI cannot run tasks takes none, and reports that in its log, its health and its heartbeat.
//
// It does not promise at-most-once execution, nor that a run which is cut off from Redis stops at once: it may go on for up to a minute.
// The fence lets only one of two runs have effects. The package knows no product: sources and the publisher are interfaces.
//
// Call [New] once per process and [Worker.Run] once per worker; Run blocks until its context ends and the worker has shut down.
// [Worker.Health] and [Worker.Examine] are safe for concurrent use. Within the package, each delivery is processed by one goroutine, which
// owns the run's fields. The goroutine that reads the agent's output calls the host's methods, and these do not block. Each loop that Run
// starts has its own goroutine. A [Meter] is called from all of them.
package worker
