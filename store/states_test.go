package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// world has three tasks of one thread, and the claim that the first has or had.
type world struct {
	*harness
	s   *Store
	c   *Claim
	ids []string
}

// situations are the worlds, each made from the one where the first task runs and the others wait: between them they
// have tasks in every
// state, with a claim that holds, has vanished or is stale.
var situations = map[string]func(ctx context.Context, w world){
	"nothing": func(ctx context.Context, w world) { w.ok(w.rdb.FlushDB(ctx).Err()) },
	"waiting": func(ctx context.Context, w world) { w.ok(w.c.Return(ctx, Wait{})) },
	"running": func(context.Context, world) {},
	"crashed": func(_ context.Context, w world) { w.crash(w.c) },
	"running, with others": func(_ context.Context, w world) {
		w.take(w.c)
		w.take(w.c)
	},
	"crashed, with others": func(_ context.Context, w world) {
		w.take(w.c)
		w.take(w.c)
		w.crash(w.c)
	},
	"crashed, with another in the checkpoint": func(ctx context.Context, w world) {
		w.ok(w.c.SaveCheckpoint(ctx, Checkpoint{Holds: []string{w.take(w.c)}}))
		w.take(w.c)
		w.crash(w.c)
	},
	"waiting, with others": func(ctx context.Context, w world) {
		w.ok(w.c.SaveCheckpoint(ctx, Checkpoint{Holds: []string{w.take(w.c), w.take(w.c)}}))
		w.ok(w.c.Return(ctx, Wait{}))
	},
	"ended": func(ctx context.Context, w world) { w.ok(w.c.End(ctx, nil)) },
	"ended, with another": func(ctx context.Context, w world) {
		w.ok(w.c.EndWith(ctx, nil, Covered{IDs: []string{w.take(w.c)}}))
		w.ok(w.c.Release(ctx))
	},
	"posted": func(ctx context.Context, w world) {
		w.ok(w.c.End(ctx, nil))
		post, _, err := w.s.Outbox.Take(ctx, w.c.ID())
		w.ok(err)
		w.ok(w.s.Outbox.MarkPosted(ctx, post))
	},
}

// steps are the methods that write, as they are called for a task; those of a claim are called for the first task's.
// Any may be refused.
var steps = map[string]func(ctx context.Context, w world, id string) error{
	"Silent": func(ctx context.Context, w world, id string) error {
		rec, _ := w.s.Get(ctx, id)
		return failed(w.s.Silent(ctx, "1", LiveRecord{Record: rec}))
	},
	"SetAside": func(ctx context.Context, w world, id string) error { return w.s.SetAside(ctx, id) },
	"Submit": func(ctx context.Context, w world, id string) error {
		_, _, err := w.s.Submit(ctx, Record{ID: id, Thread: "t", MergeKey: "k"})
		return err
	},
	"Submit, may reply": func(ctx context.Context, w world, id string) error {
		_, _, err := w.s.Submit(ctx, Record{ID: id, Thread: "t", MergeKey: "k", Reply: MayReply})
		return err
	},
	"Claim": func(ctx context.Context, w world, id string) error {
		rec, _ := w.s.Get(ctx, id)
		return failed(w.s.Claim(ctx, id, rec.Delivery, "w"))
	},
	"Requeue": func(ctx context.Context, w world, id string) error {
		rec, _ := w.s.Get(ctx, id)
		return failed(w.s.Requeue(ctx, id, rec.Delivery, rec.Fence, true))
	},
	"EndWaiting": func(ctx context.Context, w world, id string) error { return failed(w.s.EndWaiting(ctx, id, nil)) },
	"Withdraw":   func(ctx context.Context, w world, id string) error { return failed(w.s.Withdraw(ctx, id, nil)) },
	"Amend": func(ctx context.Context, w world, id string) error {
		return w.s.Amend(ctx, Record{ID: id, MergeKey: "k"}, "1")
	},
	"Retry":  func(ctx context.Context, w world, id string) error { return failed(w.s.Retry(ctx, id, nil)) },
	"Cancel": func(ctx context.Context, w world, id string) error { return failed(w.s.Cancel(ctx, id, "ann", "user")) },
	"Questions.Answer": func(ctx context.Context, w world, id string) error {
		return failed(w.s.Questions.Answer(ctx, id, "k", nil, ""))
	},
	"Move": func(ctx context.Context, w world, id string) error {
		return w.s.Move(ctx, Record{ID: id}, "gpu")
	},
	"Threads.Lock": func(ctx context.Context, w world, _ string) error {
		return failed(w.s.Threads.Lock(ctx, "t", time.Minute))
	},
	"Outbox.Take": func(ctx context.Context, w world, id string) error {
		_, _, err := w.s.Outbox.Take(ctx, id)
		return err
	},
	"Outbox.MarkPosted": func(ctx context.Context, w world, id string) error {
		post, _, err := w.s.Outbox.Take(ctx, id)
		return errors.Join(err, w.s.Outbox.MarkPosted(ctx, post))
	},
	"Outbox.GiveUp": func(ctx context.Context, w world, id string) error {
		post, _, err := w.s.Outbox.Take(ctx, id)
		return errors.Join(err, w.s.Outbox.GiveUp(ctx, post, "no"))
	},
	"Outbox.Postpone": func(ctx context.Context, w world, id string) error {
		post, _, err := w.s.Outbox.Take(ctx, id)
		return errors.Join(err, w.s.Outbox.Postpone(ctx, post, Delay{}))
	},

	"Take": func(ctx context.Context, w world, _ string) error {
		_, _, err := w.c.Take(ctx, false, nil)
		return err
	},
	"GiveBack": func(ctx context.Context, w world, id string) error { return w.c.GiveBack(ctx, false, id) },
	"Return":   func(ctx context.Context, w world, _ string) error { return w.c.Return(ctx, Wait{}) },
	"End":      func(ctx context.Context, w world, _ string) error { return w.c.End(ctx, nil) },
	"EndWith": func(ctx context.Context, w world, id string) error {
		return w.c.EndWith(ctx, nil, Covered{IDs: []string{id}})
	},
	"Release": func(ctx context.Context, w world, _ string) error { return w.c.Release(ctx) },
	"Keep": func(ctx context.Context, w world, _ string) error {
		_, _, err := w.c.refresh(ctx)
		return err
	},
	"Append": func(ctx context.Context, w world, _ string) error { return w.c.Append(ctx, event(1)) },
	"Ask": func(ctx context.Context, w world, _ string) error {
		return failed(w.c.Ask(ctx, "k", json.RawMessage(`1`)))
	},
	"First": func(ctx context.Context, w world, _ string) error { return failed(w.c.First(ctx, "k")) },
	"Reserve": func(ctx context.Context, w world, _ string) error {
		return failed(w.c.Reserve(ctx, 1, threeDollars...))
	},
	"Spend":    func(ctx context.Context, w world, _ string) error { return failed(w.c.Spend(ctx, Expense{USD: 1})) },
	"Lend":     func(ctx context.Context, w world, _ string) error { return w.c.Lend(ctx) },
	"TakeBack": func(ctx context.Context, w world, _ string) error { return w.c.TakeBack(ctx) },
	"Idle":     func(ctx context.Context, w world, _ string) error { return w.c.Idle(ctx, "x") },
	"NoSlot":   func(ctx context.Context, w world, id string) error { return w.s.NoSlot(ctx, id, 0, "x") },
	"Explain": func(ctx context.Context, w world, id string) error {
		_, _, err := w.s.Explain(ctx, id, 0, "k", 0)
		return err
	},
	"Questions.FirstWhileWaiting": func(ctx context.Context, w world, id string) error {
		return failed(w.s.Questions.FirstWhileWaiting(ctx, id, "k"))
	},
	"Questions.Unsay": func(ctx context.Context, w world, id string) error {
		return w.s.Questions.Unsay(ctx, id, "k")
	},
	"Pushing":     func(ctx context.Context, w world, _ string) error { return w.c.Pushing(ctx, "r", "b", "1") },
	"SaveSession": func(ctx context.Context, w world, _ string) error { return w.c.SaveSession(ctx, Session{}) },
	"SaveCheckpoint": func(ctx context.Context, w world, _ string) error {
		return w.c.SaveCheckpoint(ctx, Checkpoint{})
	},
	"SaveLatest": func(ctx context.Context, w world, _ string) error { return w.c.SaveLatest(ctx, "diff", nil) },
	"SaveLog":    func(ctx context.Context, w world, _ string) error { return w.c.SaveLog(ctx, "log", nil) },
}

// others are the methods that only read or do not concern a task.
const others = "SweepObjects Ready Delivered Unblocked BoundClaims Wake CallUp Counts Leader Running LiveAfter Restored ID Thread Fence Record Await Mail Get List Live Records " +
	"Places Absorbed Log Logs Checkpoint Ping Replicate Doctor.Join Doctor.Objects Doctor.Epoch Doctor.Examine Doctor.Diagnose " +
	"Pictures.Save Pictures.Read Outbox.Backlog Memos.Memo Memos.ChangeMemo Memos.Allow " +
	"Votes.Vote Votes.Of " +
	"Events.Read Events.ReadBefore Events.Follow Events.Archive Questions.List Questions.ListAll Threads.Next " +
	"Threads.OpenTasks Threads.LatestTasks Threads.Topic Threads.Session Threads.SessionMeta Threads.Pushed Threads.Alias " +
	"Threads.Resolve Workers.Beat Workers.List Workers.Inquire Workers.Respond Credentials.Admit " +
	"Credentials.Hold Credentials.Slow Credentials.Ease Credentials.Refuse Credentials.List Costs.Spent Costs.Afford " +
	"Costs.Days Logins.Save Logins.Read Logins.Drop Logins.Once Logins.Take " +
	"Links.Save Links.Add Links.Link Links.Read Links.All Links.Remove Tokens.Save Tokens.Add Tokens.Read Tokens.All Tokens.Remove " +
	"Audit.Append Audit.List Audit.Verify Tally.Hours " +
	"Paused.Save Paused.Add Paused.Read Paused.All Paused.Remove " +
	"Cordoned.Save Cordoned.Add Cordoned.Read Cordoned.All Cordoned.Remove " +
	"Rebuilds.Save Rebuilds.Add Rebuilds.Read Rebuilds.All Rebuilds.Remove "

// TestStateMachine tries every step in every situation, and wants the transitions that docs/states.md draws, no less
// and no more.
func TestStateMachine(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[*Store](), reflect.TypeFor[*Claim]()} {
		for method := range kind.Methods() {
			if name := method.Name; steps[name] == nil && !slices.Contains(strings.Fields(others), name) {
				t.Errorf("%s.%s is not tried", kind, name)
			}
		}
	}
	for field := range reflect.TypeFor[Store]().Fields() {
		for method := range field.Type.Methods() {
			if name := field.Name + "." + method.Name; steps[name] == nil &&
				!slices.Contains(strings.Fields(others), name) {
				t.Errorf("%s is not tried", name)
			}
		}
	}
	t.Parallel()
	h := newHarness(t, redistest.Start(t), nil) // miniredis takes 20 times as long for it
	s, happen := h.store(Config{}), map[string]bool{}
	for situation, bring := range situations {
		var before []spot
		for name, step := range steps {
			for n := range 3 {
				if _, is := reflect.TypeFor[*Claim]().MethodByName(name); is && n > 0 && name != "GiveBack" && name != "EndWith" {
					break // it is for the first task
				}
				w := h.world(s)
				bring(h.Context(), w)
				if before == nil {
					before = w.spots()
				}
				err := step(h.Context(), w, w.ids[n])
				if broken, ok := errors.AsType[redis.Error](err); ok {
					h.Errorf("%s: %s: %v", situation, name, broken)
				}
				for i, now := range w.spots() {
					if arrow := before[i].to(now); arrow != "" {
						method, _, _ := strings.Cut(name, ",") // the rest describes the call
						happen[arrow+": "+method] = true
					}
				}
			}
		}
	}
	if diff := gocmp.Diff(drawn(h.T), happen); diff != "" {
		h.Errorf("docs/states.md draws (-) and steps do (+):\n%s", diff)
	}
}

func (h *harness) world(s *Store) world {
	h.Helper()
	h.empty()
	ids := h.put(s, kin(1), kin(2), kin(3))
	return world{h, s, must(s.Claim(h.Context(), ids[0], 0, "w")), ids}
}

// spot is a stage of a task's life.
type spot struct {
	state State // empty: no such task
	going bool  // it will expire
}

func (w world) spots() (list []spot) {
	w.Helper()
	var states []*redis.StringCmd
	var lives []*redis.DurationCmd
	_, err := w.rdb.Pipelined(w.Context(), func(p redis.Pipeliner) error {
		for _, id := range w.ids {
			states = append(states, p.HGet(w.Context(), "errand:task:"+id, "state"))
			lives = append(lives, p.PTTL(w.Context(), "errand:task:"+id))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) { // there is no such task
		w.Fatal(err)
	}
	for i := range w.ids {
		sp := spot{State(states[i].Val()), lives[i].Val() > 0}
		if sp.going && sp.state != Ended {
			w.Errorf("a task that is %s expires", sp.state)
		}
		list = append(list, sp)
	}
	return list
}

// to is the arrow from one spot to another; or empty. The expiry of ended tasks is not drawn.
func (sp spot) to(next spot) string {
	switch {
	case next.state != sp.state:
		return string(cmp.Or(sp.state, "[*]")) + " --> " + string(cmp.Or(next.state, "[*]"))
	case next.going && !sp.going:
		return string(sp.state) + " --> [*]"
	default:
		return ""
	}
}

// drawn reads the diagram's transitions: one for each step that a label names before the bracket.
func drawn(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	arrows := regexp.MustCompile(`(?m)^ +(\S+ --> \S+): ([\w., ]*\w)`)
	for _, arrow := range arrows.FindAllStringSubmatch(string(text), -1) {
		for step := range strings.SplitSeq(arrow[2], ", ") {
			all[arrow[1]+": "+step] = true
		}
	}
	return all
}
