package worker

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// put overwrites a field of a stored record.
func (f *fleet) put(key, field, value string) {
	f.Helper()
	if err := f.rdb.HSet(f.Context(), key, field, value).Err(); err != nil {
		f.Fatal(err)
	}
}

// A task whose record cannot be read is listed as unreadable beside all others.
func TestUnreadableTaskIsListed(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{"task": `{"id":7}`, "task ": "{", "ending": `"x"`, "state": "paused"} {
		t.Run(field+value, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.worker()
			bad, good := f.submit(f.task("a", "bad")), f.submit(f.task("b", "good"))
			f.ending(bad)
			f.ending(good)
			f.put("errand:task:"+bad, strings.TrimSpace(field), value)
			l, err := f.desk.List(t.Context(), desk.Filter{})
			if err != nil || len(l.Tasks) != 2 || l.Tasks[0].Task.Prompt != "good" {
				t.Fatalf("%+v, %v", l, err)
			}
			one, err := f.desk.Status(t.Context(), bad)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []tasks.Status{l.Tasks[1], one} {
				if s.Task.ID != bad || !strings.Contains(s.Unreadable, "unreadable record "+bad+": ") ||
					s.State != "ended" || s.Ending == nil {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

// A waiting task that cannot be read is given up after a few attempts, because another worker may be able to read it. A
// task without a record is set aside. Either way its thread continues, and so does recovery.
func TestUnreadableTaskDoesNotHoldUpItsThread(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	bad, next := f.submit(f.task("a", "bad")), f.submit(f.task("a", "next"))
	worse, other := f.submit(f.task("b", "worse")), f.submit(f.task("b", "other"))
	f.put("errand:task:"+bad, "task", "{")
	f.put("errand:task:"+bad, "attempt", "2") // without this it takes longer
	if err := f.rdb.Set(t.Context(), "errand:task:"+worse, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	dead := f.submit(f.task("c", "dead"))
	if _, err := f.store.Claim(t.Context(), dead, 0, "dead"); err != nil {
		t.Fatal(err)
	}
	f.worker()
	for _, id := range []string{next, other, dead} {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("%s: %+v", id, e)
		}
	}
	if s := f.status(bad); s.State != "ended" || s.Ending.Kind != tasks.Failed || s.Unreadable == "" {
		t.Errorf("%+v", s)
	}
	for n := -1; n != 0; { // set aside
		live, err := f.rdb.ZCard(t.Context(), "errand:live").Result()
		if err != nil {
			t.Fatal(err)
		}
		n = int(live)
	}
}

// A thread whose session or topic cannot be read continues, and the answer says that it is a new conversation.
func TestUnreadableSession(t *testing.T) {
	t.Parallel()
	for way, spoil := range map[string]func(*fleet){
		"not JSON":     func(f *fleet) { f.put("errand:session:fake/a", "meta", "{") },
		"another type": func(f *fleet) { f.rdb.Set(f.Context(), "errand:session:fake/a", "x", 0) },
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.worker()
			f.ending(f.submit(f.task("a", "one")))
			spoil(f)
			f.rdb.Set(t.Context(), "errand:topic:fake/a", "{", 0)
			if _, err := f.desk.Thread(t.Context(), "fake/a"); err == nil ||
				!strings.Contains(err.Error(), tasks.ErrNotFound.Error()) {
				t.Errorf("topic: %v", err)
			}
			e := f.ending(f.submit(f.task("a", "two")))
			if e.Kind != tasks.Answered || !strings.Contains(e.Footer(), "a new conversation") {
				t.Errorf("%+v, %s", e, e.Footer())
			}
			if third := f.ending(f.submit(f.task("a", "three"))); third.Result.Fresh {
				t.Errorf("%+v", third)
			}
			if specs := f.agent.specs(); specs[1].Resume != nil || specs[2].Resume == nil {
				t.Errorf("resumed %+v, then %+v", specs[1].Resume, specs[2].Resume)
			}
		})
	}
}

// A question or an answer that cannot be read is skipped: the task is shown, and its other question can be answered.
func TestUnreadableQuestion(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	f.talker(s)
	id := f.submit(f.task("a", "paint"))
	q := <-s.asked
	rec, err := f.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]string{
		"q:odd": "{", "q:other": `{"text":7}`, "q:answered": `{"key":"answered"}`, "a:answered": "[]",
	} {
		f.put("errand:questions:"+id, field, value)
		f.put("errand:questions:"+id, "f:"+field[2:], strconv.FormatInt(rec.Fence, 10))
	}
	if s, err := f.desk.Status(t.Context(), id); err != nil || len(s.Questions) != 1 || s.Questions[0].Key != q.Key {
		t.Errorf("status: %+v, %v", s.Questions, err)
	}
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "blue"); err != nil {
		t.Error(err)
	}
	if e := f.ending(id); e.Result.Text != "ann answered: blue" {
		t.Errorf("the agent got %q", e.Result.Text)
	}
	if err := f.rdb.Set(t.Context(), "errand:questions:"+id, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if list, err := f.desk.Questions(t.Context(), id); err != nil || len(list) > 0 {
		t.Errorf("of no hash: %+v, %v", list, err)
	}
}
