package store

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is the stage of a task's life.
type State string

// The states. A task may change between waiting and running or absorbed many times. Only Retry leaves ended.
const (
	Waiting  State = "waiting"
	Running  State = "running"
	Absorbed State = "absorbed" // in the run of another task of its thread
	Ended    State = "ended"
)

// Record is a copy of one task, true at the moment it was read.
type Record struct {
	ID       string          // begins with 16 digits of unix microseconds and a dash; [a-z0-9.-], at most 80 bytes
	Thread   string          // tasks of one thread run one after the other, in the order of their IDs
	Class    string          // the queue it belongs to; opaque here
	Task     json.RawMessage // opaque, at most 1 MiB
	Scopes   []string        // "<kind>:<name>" each, for caps and budgets; the names are opaque here
	State    State
	MergeKey string // a run may absorb another task of the thread with the same non-empty key; opaque
	Into     string // the task whose run has absorbed it, or with which it ended

	// Topic is stored for the thread's next task; nil leaves the stored one. Opaque; see [Threads.Topic]. Records that
	// were read do not have it.
	Topic json.RawMessage

	Reply ReplyMode // read by Submit; not in records that were read

	// What Submit saw when it stored the task; zero in records that were read.
	Before int  // tasks of its thread before it, a running one included
	Joins  bool // the first of them is going to absorb it

	Delivery int       // which delivery is the valid one: asynq's task ID is <id> for 0, <id>.r<n> for n
	At       time.Time // not to be started before; zero = at once
	Why      string    // what a started task waits for, for display; see Wait
	Blocked  Blocked   // why a waiting task was last refused
	Attempt  int       // runs started, without those given back
	Parks    int       // times it was parked; see Wait
	Crashes  int       // runs lost with their worker
	Crashed  time.Time // when the latest of these was found; zero if no run was lost
	Fence    int64     // token of the latest claim of this task, 0 = never claimed
	Worker   string    // the worker that runs it or ran it last
	Cost     float64   // US dollars of all settled runs; see [Claim.Spend]

	Created, Started, Ended time.Time // by Redis' clock; Started is the latest run's
	Retried                 time.Time // since when it is retried; zero if it is not

	CancelBy, CancelCause string          // the tombstone: the first cancel wins; no cause = not cancelled
	Ending                json.RawMessage // opaque, set when ended
	Outbox                int             // attempts to post the final message, -1 = posted

	Unreadable string // why the record cannot be read; empty if it can. Its other fields are then unreliable
}

// Due returns when the task could first have started, or when it was retried.
func (r Record) Due() time.Time {
	return slices.MaxFunc([]time.Time{r.Created, r.Retried, r.At}, time.Time.Compare)
}

func decode(id string, f map[string]string) Record {
	return Record{
		ID: id, Thread: f["thread"], Class: f["class"], Task: raw(f["task"]), State: State(f["state"]), MergeKey: f["merge_key"], Into: f["into"],
		Delivery: number(f["delivery"]), At: fromMicros(f["at"]), Why: f["why"], Blocked: blocked(f["blocked"]),
		Attempt: number(f["attempt"]), Parks: number(f["parks"]), Crashes: number(f["crashes"]),
		Fence: int64(number(f["fence"])), Worker: f["worker"], Scopes: lines(f["scopes"]), Cost: usd(f["cost"]),
		Created: fromMicros(f["created"]), Started: fromMicros(f["started"]), Ended: fromMicros(f["ended"]), Retried: fromMicros(f["retried"]), Crashed: fromMicros(f["crashed"]),
		CancelBy: f["cancel_by"], CancelCause: f["cancel_cause"], Ending: raw(f["ending"]), Outbox: number(f["outbox"]),
		Unreadable: flaw(f),
	}
}

// number parses a number that a script wrote; a missing field is 0.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// lines splits a list that scripts keep in a field; an empty field is nil.
func lines(field string) []string {
	if field == "" {
		return nil
	}
	return strings.Split(field, "\n")
}
