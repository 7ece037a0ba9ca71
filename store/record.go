package store

import (
	"encoding/json"
	"fmt"
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
	Class    string          // with Pool, the queue it belongs to; only lines for a cap know an order of classes
	Pool     string          // only workers of the pool run it; empty: those of the default one
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

	Delivery int              // which delivery is the valid one: asynq's task ID is <id> for 0, <id>.r<n> for n
	At       time.Time        // not to be started before; zero = at once
	Why      string           // what a started task waits for, for display; see Wait
	Blocked  Blocked          // why a waiting task is blocked; see [Full]
	Attempt  int              // runs started, without those given back
	Parks    map[string]Parks // by cause; see Wait
	Doubt    bool             // it may have started or ended before, if Redis has lost that; set by Claim
	Crashes  int              // runs lost with their worker
	Crashed  time.Time        // when the latest of these was found; zero if no run was lost
	Fence    int64            // token of the latest claim of this task, 0 = never claimed
	Worker   string           // the worker that runs it or ran it last
	Runs     []Run            // the latest 20 since it was last retried, oldest first
	Cost     float64          // US dollars of all settled runs, also those before a retry; see [Claim.Spend]
	Settled  bool             // Cost has that of the latest run

	Created, Started, Ended time.Time       // by Redis' clock; Started is the latest run's
	Retried                 time.Time       // since when it is retried; zero if it is not
	RetriedBy               json.RawMessage // who retried it; opaque, nil if unknown

	CancelBy, CancelCause string          // the tombstone: the first cancel wins; no cause = not cancelled
	Ending                json.RawMessage // opaque, set when ended
	Outbox                int             // attempts to post the final message, -1 = posted or given up
	Shown                 bool            // people have the answer; only its status is not up to date
	Unposted              string          // why the last attempt failed, as a clause; opaque
	Undelivered           string          // why the message was given up, likewise; empty: it was not

	Unreadable string // why the record cannot be read; empty if it can. Its other fields are then unreliable
}

// Run is one run of a task, also one that was handed back before its work began.
type Run struct {
	Worker  string    `json:"worker"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // zero: it goes on or gave the task its ending
	Why     string    `json:"why,omitempty"`  // why the task waited again, as a clause
}

// runs parses what begin_run and end_run of common.lua write.
func runs(field string) (list []Run) {
	for _, line := range lines(field) {
		part := append(strings.Split(line, "\t"), "", "", "")
		list = append(list, Run{
			Started: fromMicros(part[0]), Worker: part[1], Ended: fromMicros(part[2]), Why: part[3],
		})
	}
	return list
}

// Due returns when the task could first have started, or when it was retried.
func (r Record) Due() time.Time {
	return slices.MaxFunc([]time.Time{r.Created, r.Retried, r.At}, time.Time.Compare)
}

func decode(id string, f map[string]string) Record {
	return Record{
		ID: id, Thread: f["thread"], Class: f["class"], Pool: f["pool"], Task: raw(f["task"]), State: State(f["state"]),
		MergeKey: f["merge_key"], Into: f["into"], Delivery: number(f["delivery"]), At: fromMicros(f["at"]),
		Why: f["why"], Blocked: blocked(f["blocked"]), Attempt: number(f["attempt"]), Parks: parks(f["parked"]),
		Crashes: number(f["crashes"]), Doubt: f["doubt"] != "", Fence: int64(number(f["fence"])), Worker: f["worker"],
		Runs: runs(f["runs"]), Scopes: lines(f["scopes"]), Cost: usd(f["cost"]),
		Settled: f["settled"] != "" && f["settled"] == f["fence"], Created: fromMicros(f["created"]),
		Started: fromMicros(f["started"]), Ended: fromMicros(f["ended"]), Retried: fromMicros(f["retried"]),
		RetriedBy: raw(f["retried_by"]), Crashed: fromMicros(f["crashed"]), CancelBy: f["cancel_by"],
		CancelCause: f["cancel_cause"], Ending: raw(f["ending"]), Outbox: number(f["outbox"]), Unreadable: flaw(f),
		Shown: f["shown"] != "", Unposted: f["unposted"], Undelivered: f["undelivered"],
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

// A record may be unreadable because another version or a mistake wrote it. It must not affect other tasks: a step
// that reads many records skips it and reports its ID and the reason.

// Parks says how often a task was parked for a cause since it was last retried.
type Parks struct {
	Times int
	First time.Time
}

// parks decodes a field that return.lua wrote. Lines of another form are left out.
func parks(field string) map[string]Parks {
	var all map[string]Parks
	for line := range strings.Lines(field) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		if all == nil {
			all = map[string]Parks{}
		}
		all[f[0]] = Parks{Times: number(f[2]), First: fromMicros(f[1])}
	}
	return all
}

// flaw returns why the fields of a record cannot be read, or "" if they can.
func flaw(f map[string]string) string {
	switch state := State(f["state"]); {
	case state == "":
		return "it has no state"
	case f["thread"] == "":
		return "it has no thread"
	case !slices.Contains([]State{Waiting, Running, Absorbed, Ended}, state):
		return fmt.Sprintf("its state is %.40q, which this version does not know", state)
	}
	return ""
}

// noHash returns an unreadable record for a key that is not a hash.
func noHash(id string) Record { return Record{ID: id, Unreadable: "it is no hash"} }
