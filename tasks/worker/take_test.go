package worker

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/publish"
)

// taking is a fleet whose agents work until they are stopped.
func taking(t *testing.T) (*remote, *hub, func(*Config), chan string) {
	t.Helper()
	r, h, with := publishingFleet(t, nil)
	started := make(chan string, 10)
	wait := untilStopped(started)
	r.agent.do = func(ctx context.Context, s agent.Spec, host agent.Host) (agent.Result, error) {
		if s.Resume == nil && s.Prompt.Text != "no repository" {
			r.everything(s)
		}
		return wait(ctx, s, host)
	}
	return r, h, with, started
}

// refusal returns why a task is not taken over.
func (f *fleet) refusal(id string) string {
	f.Helper()
	_, err := f.desk.Take(f.Context(), id, "@bo")
	input, ok := errors.AsType[*tasks.InputError](err)
	if !ok {
		f.Fatalf("not refused: %v", err)
	}
	return input.Sentence
}

// A run that is taken over ends, with its work on the thread's branch: without checks, for which the person would wait,
// and without a pull request. A second person gets the same.
func TestTake(t *testing.T) {
	t.Parallel()
	r, h, with, started := taking(t)
	h.checks = []string{"true"}
	r.agent.script = func(context.Context, agent.Script) (agent.Scripted, error) {
		t.Error("a check ran")
		return agent.Scripted{Outcome: agent.Done}, nil
	}
	r.worker(r.disk(t.TempDir()), with)
	id := r.submit(r.repoTask("a"))
	<-started
	for _, by := range []string{"@ann", "@bo"} {
		got, err := r.desk.Take(t.Context(), id, by)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Works) != 1 || got.Works[0].Repo != "acme/api" || got.Works[0].Branch != publish.Branch("", "fake/a") ||
			got.Session == "" || len(got.Data) == 0 {
			t.Errorf("%s got %+v", by, got)
		}
	}
	e := r.ending(id)
	if e.Kind != tasks.Taken || e.Sentence() != "Taken over by ann. Ask again to continue here." || len(e.PullRequests()) > 0 {
		t.Errorf("ending = %+v", e)
	}
	if got := r.pushed("fake/a"); got != "Do it, work" || len(h.proposed()) > 0 {
		t.Errorf("pushed %s, proposed %+v", got, h.proposed())
	}
}

// A worker that shuts down while its run is to be taken over loses nothing: the task continues from its checkpoint, and
// is not ended by the request.
func TestTakeDuringADrain(t *testing.T) {
	t.Parallel()
	r, _, with, started := taking(t)
	stop := r.worker(r.disk(t.TempDir()), with)
	id := r.submit(r.repoTask("a"))
	<-started
	stop()
	if why := r.refusal(id); !strings.Contains(why, "The task waits: ") {
		t.Error(why)
	}
	if _, err := r.store.Cancel(t.Context(), id, "@bo", record.CauseTaken); err != nil { // the run had just ended
		t.Fatal(err)
	}
	r.worker(r.disk(t.TempDir()), with)
	<-started
	if _, err := r.desk.Take(t.Context(), id, "@ann"); err != nil {
		t.Fatal(err)
	}
	last := r.agent.specs()[1]
	if e := r.ending(id); e.By != "@ann" || last.Resume == nil || !bytes.HasPrefix(last.Resume.Data, []byte("so far")) {
		t.Errorf("ending %+v after %+v", e, last.Resume)
	}
}

// A run that has not read its prompt yet has nothing to hand over. What an earlier run has left stays.
func TestTakeBeforeTheAgentHasBegun(t *testing.T) {
	t.Parallel()
	r, _, with, started := taking(t)
	stop := r.worker(r.disk(t.TempDir()), with)
	id := r.submit(r.repoTask("a"))
	<-started
	stop()
	before, err := r.store.Checkpoint(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.agent.unread = true
	stop = r.worker(r.disk(t.TempDir()), with)
	<-started
	cancelled, err := r.store.Cancel(t.Context(), id, "@ann", record.CauseTaken)
	if err != nil || cancelled.CancelCause != record.CauseTaken {
		t.Fatalf("%+v, %v", cancelled, err)
	}
	<-started // it runs again
	stop()
	after, err := r.store.Checkpoint(t.Context(), id)
	if err != nil || !bytes.Equal(before.Work, after.Work) || !bytes.Equal(before.Session.Data, after.Session.Data) {
		t.Errorf("checkpoint of %d bytes, then of %d: %v", len(before.Work), len(after.Work), err)
	}
	if rec, err := r.store.Get(t.Context(), id); err != nil || rec.State != store.Waiting || rec.CancelCause != "" {
		t.Errorf("%+v, %v", rec, err)
	}
}

// What cannot be taken over is refused, and goes on.
func TestNotTaken(t *testing.T) {
	t.Parallel()
	r, _, with, started := taking(t)
	r.worker(r.disk(t.TempDir()), with)
	first, bare := r.submit(r.repoTask("a")), r.submit(r.task("b", "no repository"))
	<-started
	<-started
	second := r.task("a", "another")
	second.Class = tasks.Review // not absorbed
	waits := r.submit(second)
	if why := r.refusal(first); !strings.Contains(why, "of the same thread runs or waits") {
		t.Error(why)
	}
	if why := r.refusal(bare); !strings.Contains(why, "has no repository") {
		t.Error(why)
	}
	for _, id := range []string{first, bare, waits} {
		if s, err := r.desk.Status(t.Context(), id); err != nil || s.Ending != nil || s.Cancel != "" {
			t.Errorf("%s is %+v, %v", id, s, err)
		}
	}
	if _, err := r.desk.Take(t.Context(), "1-none", "@ann"); !errors.Is(err, tasks.ErrNotFound) {
		t.Error(err)
	}
}

// Whoever takes a task over sees all repositories that its conversation has been about.
func TestTakeNeedsTheRights(t *testing.T) {
	t.Parallel()
	r, _, with := publishingFleet(t, (*remote).everything)
	r.worker(r.disk(t.TempDir()), with)
	id := r.submit(r.repoTask("a"))
	r.ending(id)
	meta, err := r.store.Threads.SessionMeta(t.Context(), "fake/a")
	if err != nil {
		t.Fatal(err)
	}
	as := func(role policy.Role, sees ...string) error {
		_, err := r.desk.Take(people.WithVisitor(t.Context(), people.Visitor{
			Name: "bo", Role: role, In: func(_ context.Context, repo string) (in policy.Repo) {
				if slices.Contains(sees, repo) {
					in.Role = role
				}
				return in
			},
		}), id, "@bo")
		return err
	}
	if err := as(policy.Operator, "acme/api"); err != nil {
		t.Error(err)
	}
	for role, sees := range map[policy.Role]string{policy.User: "acme/api", policy.Operator: "acme/web"} {
		if err := as(role, sees); err == nil {
			t.Errorf("a %s of %s took it over", role, sees)
		}
	}
	r.set("errand:session:fake/a", "meta", strings.Replace(string(meta), `["acme/api"`, `["acme/web","acme/api"`, 1))
	if err := as(policy.Operator, "acme/api"); err == nil || !strings.Contains(err.Error(), "may not see") {
		t.Errorf("after work in acme/web: %v", err)
	}
	if err := as(policy.Operator, "acme/api", "acme/web"); err != nil {
		t.Error(err)
	}
}
