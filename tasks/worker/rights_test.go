package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

// accounts are what people may do on a forge, by login. It fails as often as the test says.
type accounts struct {
	mu    sync.Mutex
	level map[string]forge.Permission
	fails []error
	asked int
}

func (*accounts) Name() string { return "github" }

func (*accounts) AccountID(context.Context, string, string) (int64, error) { return 0, nil }

func (a *accounts) Permission(_ context.Context, _, login string) (forge.Permission, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if len(a.fails) > 0 {
		err := a.fails[0]
		a.fails = a.fails[1:]
		return forge.PermissionNone, err
	}
	return a.level[login], nil
}

func (*accounts) Private(context.Context, string) (bool, error) { return true, nil }

// limit limits the people of a fleet.
func (f *fleet) limit(a *accounts) func(*Config) {
	return func(c *Config) { c.Policy.Rights = &rights.ForgeRights{Forge: a} }
}

// submitAs submits a task of a person whose account the front door knows.
func (f *fleet) submitAs(login string, t tasks.Task) string {
	f.Helper()
	t.Actor = login
	if _, err := f.desk.Submit(people.WithVisitor(f.Context(),
		people.Visitor{Name: login, Login: login, Role: policy.Admin}), t); err != nil {
		f.Fatal(err)
	}
	return t.ID
}

// A task waits while the forge does not say what its asker may do. A reader's run can only read, and says so.
func TestRightsBeforeARun(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	limit := func() error { return &forge.LimitError{At: time.Now().Add(10 * time.Millisecond), Why: "a limit"} }
	hub := &accounts{
		level: map[string]forge.Permission{"ann": forge.PermissionRead, "eve": forge.PermissionNone},
		fails: []error{limit(), limit()},
	}
	id := r.submitAs("ann", r.repoTask("a"))
	r.worker(r.disk(t.TempDir()), with, r.limit(hub))
	if e := r.ending(id); e.Kind != tasks.Answered || e.Published != nil {
		t.Errorf("%+v", e)
	}
	run := r.agent.specs()[0]
	if hub.asked != 3 || run.Profile != agent.Read ||
		!strings.Contains(run.System, "may read acme/api but not write to it") || len(h.proposed()) > 0 {
		t.Errorf("asked %d times, ran as %s: %s", hub.asked, run.Profile, run.System)
	}
	if notes := r.events(id, agent.Notice); !slices.Contains(notes,
		"  The person who asked may read acme/api but not write to it. So nothing can be changed.") {
		t.Errorf("notices %q", notes)
	}
	if e := r.ending(r.submitAs("eve", r.repoTask("b"))); e.Kind != tasks.Refused ||
		e.Reason != "eve has no access to acme/api." {
		t.Errorf("%+v", e)
	}
	hub.mu.Lock()
	hub.fails = []error{errors.New("bad gateway")}
	hub.mu.Unlock()
	again := r.submitAs("eve", r.repoTask("c"))
	if e := r.ending(again); e.Kind != tasks.Refused || r.status(again).Attempt != 2 {
		t.Errorf("after a failure of the forge: attempt %d, %+v", r.status(again).Attempt, e)
	}
	if n := len(r.agent.specs()); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A run takes up the messages of people who may do as much as the run may do. Others wait for a run of their own, or
// are refused.
func TestRightsOfMessages(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	runs := r.converses()
	hub := &accounts{level: map[string]forge.Permission{
		"ann": forge.PermissionWrite, "bob": forge.PermissionAdmin, "rita": forge.PermissionRead,
	}}
	r.worker(r.disk(t.TempDir()), r.limit(hub))
	next := func(prompt string) tasks.Task {
		t := r.repoTask("a")
		t.Prompt = prompt
		return t
	}
	first := r.submitAs("ann", next("one"))
	run := <-runs
	refused := r.submitAs("eve", next("two"))
	taken := r.submitAs("bob", next("three"))
	m := run.next()
	if !strings.HasSuffix(m.Text, "three") {
		t.Errorf("took %q", m.Text)
	}
	run.take(m)
	if e := r.ending(refused); e.Kind != tasks.Refused || e.Reason != "eve has no access to acme/api." {
		t.Errorf("%+v", e)
	}
	apart := r.submitAs("rita", next("four"))
	if m := run.rest(); m.Text != "" {
		t.Errorf("took %q", m.Text)
	}
	run.end <- answer("done")
	if e := r.ending(first); !slices.Equal(e.Covers, []string{taken}) {
		t.Errorf("covers %v", e.Covers)
	}
	if run = <-runs; run.spec.Profile != agent.Read || run.spec.ID != apart {
		t.Errorf("then ran %s as %s", run.spec.ID, run.spec.Profile)
	}
	run.end <- answer("read")
	r.ending(apart)
}

// A question says which rights an answer needs.
func TestQuestionHasTheProfileOfItsRun(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	f.talker(s)
	task := f.task("a", "paint")
	task.Profile = agent.Write
	id := f.submit(task)
	<-s.asked
	if list, err := f.desk.Questions(t.Context(), id); err != nil || len(list) != 1 || list[0].Profile != agent.Write {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "blue"); err != nil {
		t.Error(err)
	}
	f.ending(id)
}

// Without a sandbox the commands of a run reach every repository on the machine. So people who may not read them all
// get no commands, whatever they ask about, and their messages do not steer a run that has some.
func TestRightsWithoutASandbox(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.agent.flat = true
	runs := r.converses()
	hub := &accounts{level: map[string]forge.Permission{"ann": forge.PermissionWrite, "eve": forge.PermissionNone}}
	r.worker(r.disk(t.TempDir()), r.limit(hub), func(c *Config) { c.Policy.Listed = []string{"acme/api"} })
	nowhere := func(thread, prompt string) tasks.Task {
		t := r.repoTask(thread)
		t.Repo, t.Prompt = "", prompt
		return t
	}
	first := r.submitAs("ann", nowhere("a", "one"))
	run := <-runs
	if run.spec.Profile != agent.Write {
		t.Errorf("with access to all: %s", run.spec.Profile)
	}
	apart := r.submitAs("eve", nowhere("a", "two"))
	if m := run.rest(); m.Text != "" {
		t.Errorf("took %q", m.Text)
	}
	run.end <- answer("done")
	if e := r.ending(first); len(e.Covers) > 0 {
		t.Errorf("covers %v", e.Covers)
	}
	run = <-runs
	if run.spec.ID != apart || run.spec.Profile != agent.Read ||
		!strings.Contains(run.spec.System, "this worker has no sandbox") {
		t.Errorf("%s ran as %s: %s", run.spec.ID, run.spec.Profile, run.spec.System)
	}
	run.end <- answer("read")
	r.ending(apart)
}
