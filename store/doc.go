// Package store keeps everything of the fleet that outlives a process, in Redis: tasks, claims, sessions, checkpoints, events, the outbox.
//
// It promises:
//   - Every step that touches more than one key is one Lua script: it happens whole or not at all, and two callers never see half.
//   - At most one holder per thread. A [Claim] expires unless [Claim.Keep] runs, and carries a fence, a number that only grows;
//     every write of a holder is checked against it, and a holder that was replaced gets [ErrStale] and changes nothing.
//   - A task has one ending: it leaves waiting and running once, by whoever comes first, until [Store.Retry].
//   - What a run has absorbed ends with it or waits again, in the same step that ends the run or lets it wait.
//   - What a run has cost counts once, in budgets and in the costs of its day, which are written in one step.
//   - A checkpoint is read as it was saved, whole, or not at all, and does not outlive its task.
//   - Steps are idempotent where a lost answer makes go-redis send them again. But [Claim.Append] may then store an event twice,
//     [Credentials.Admit] and [Memos.Allow] take a turn for nothing, [Credentials.Ease] ease twice, [Outbox.Take] of just any task leave one to
//     its lease, and [ThreadLock.Release] find nothing to release.
//   - Redis' clock is the only clock. Those of the workers are not compared.
//   - Whoever follows a task hears of its events in order, each once, however slow others are.
//   - Whatever ended and was posted expires, with all that belongs to it.
//   - A Redis that lost everything gets a running task back from its holder, with the next thing that this does.
//   - A record that cannot be read is told of as such by whatever reads many, and holds up no other.
//
// It does not promise more to a Redis that loses data: run it with an append-only file and maxmemory-policy noeviction. It does
// not look into tasks, endings, events and sessions. It decides nothing about when to retry, requeue or give up: that is package
// tasks. Redis Cluster and Ring are refused, because scripts span the keys of a thread.
//
// Redis is 6.2 or newer, or miniredis. keys.go documents every key. All methods may be called from any goroutine; a context that ends
// is honoured between round trips, and within one by the client's own timeouts (2 s and one retry suit the claim's rhythm of 5 s).
//
// Errors say what was done to which object and wrap one of the errors in errors.go where a caller has to decide.
package store
