// Package store keeps everything that outlives a process in Redis: tasks, claims, sessions, checkpoints, events, the
// outbox.
//
// It promises:
//   - Every step that changes more than one key is one Lua script, and so atomic.
//   - A thread has at most one holder. A [Claim] expires unless [Claim.Keep] runs, and has a fencing token, a number
//     that only grows. Every write of a holder is checked against it; a replaced holder gets [ErrStale] and changes
//     nothing.
//   - A task has one ending, the first, until [Store.Retry].
//   - Absorbed tasks end with their run or wait again, in the step that ends the run.
//   - The cost of a run counts once, in budgets and in the costs of its day, in one step.
//   - A checkpoint is read exactly as it was saved or not at all, and does not outlive its task.
//   - Steps are idempotent if a lost reply makes go-redis send them again. But [Claim.Append] may then store an event
//     twice, [Credentials.Admit] and [Memos.Allow] use a turn for nothing, [Credentials.Ease] eases twice,
//     [Outbox.Take] without an ID leaves a task to its lease, and [ThreadLock.Release] finds nothing to release.
//   - Redis' clock is the only clock.
//   - A follower of a task gets its events in order, each once, regardless of slower followers.
//   - Tasks that have ended and were posted expire with everything that belongs to them.
//   - If Redis loses its data, the next step of a holder restores its running task.
//   - An unreadable record is reported and does not affect others.
//
// It promises nothing else if Redis loses data: run Redis with an append-only file and maxmemory-policy noeviction.
// The store does not interpret tasks, endings, events and sessions. Package tasks decides when to retry, requeue or
// give up. Redis Cluster and Ring are refused, because scripts span the keys of a thread.
//
// Redis must be 6.2 or newer; miniredis works, too. keys.go documents every key. All methods are safe for concurrent
// use. A context is checked between round trips; within one, the client's timeouts apply (2 s and one retry suit the
// renewal of claims every 5 s).
//
// Errors name the step and its object, and wrap an error of errors.go if callers have to distinguish it.
package store
