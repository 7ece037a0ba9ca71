package store

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is where a task is in its life.
type State string

// The states. Waiting and running or absorbed may alternate many times; ended is left by Retry only.
const (
	Waiting  State = "waiting"
	Running  State = "running"
	Absorbed State = "absorbed" // in the run of another task of its thread
	Ended    State = "ended"
)

// Record is one task as the store knows it: a copy, true at the moment it was read.
type Record struct {
	ID       string          // begins with 16 digits of unix microseconds and a dash; [a-z0-9.-], at most 80 bytes
	Thread   string          // tasks of one thread run one after the other, in the order of their IDs
	Class    string          // the queue it belongs to; opaque here
	Task     json.RawMessage // opaque, at most 1 MiB
	Scopes   []string        // what it counts in, for caps and budgets: "<kind>:<name>" each, names opaque here
	State    State
	MergeKey string // the run of one task may absorb another of its thread if both have the same, which is not empty; opaque
	Into     string // whose run has absorbed it; with whom it ended

	// Topic is what Submit remembers of the thread, for its next task; nil = nothing new. Opaque; see [Threads.Topic], not in records that
	// were read.
	Topic json.RawMessage

	Reply ReplyMode // read by Submit; not in records that were read

	// What Submit saw when it stored the task; zero in records that were read.
	Before int  // tasks of its thread before it, a running one included
	Joins  bool // the first of them is going to absorb it

	Delivery int       // which delivery is the valid one: asynq's task ID is <id> for 0, <id>.r<n> for n
	At       time.Time // not to be started before; zero = at once
	Why      string    // what a task waits for that was begun before, for people; see Wait
	Blocked  Blocked   // what a waiting task was refused for when it last asked to start
	Attempt  int       // runs started, without those given back
	Parks    int       // times it was parked; see Wait
	Crashes  int       // runs lost with their worker
	Crashed  time.Time // when the latest of these was found; zero = none was
	Fence    int64     // token of the latest claim of this task, 0 = never claimed
	Worker   string    // who runs it or ran it last
	Cost     float64   // US dollars, of all its runs, as far as they were settled; see [Claim.Spend]

	Created, Started, Ended time.Time // by Redis' clock; Started is the latest run's
	Retried                 time.Time // since when it is tried again, zero if it is not

	CancelBy, CancelCause string          // the tombstone: the first cancel wins; no cause = not cancelled
	Ending                json.RawMessage // opaque, set when ended
	Outbox                int             // attempts to post the final message, -1 = posted

	Unreadable string // why the record cannot be read; empty = it can. Of one that cannot, what else there is counts for little
}

// Due is from when on the task could have started; one that is tried again, since then.
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

// number reads what a script wrote; a field that is not there is 0.
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

// lines reads a list as scripts keep it in a field; nil for none.
func lines(field string) []string {
	if field == "" {
		return nil
	}
	return strings.Split(field, "\n")
}
