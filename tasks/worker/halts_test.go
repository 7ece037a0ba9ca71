package worker

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// operator is the context of a request by Ada.
func operator(t *testing.T) context.Context {
	return people.WithVisitor(t.Context(), people.Visitor{Name: "ada@acme.test", Person: "Ada", Role: policy.Operator})
}

// Workers take nothing of a paused class, other classes go on, and the thread gets the reason. After the pause the
// task runs.
func TestPausedClass(t *testing.T) {
	t.Parallel()
	f, source := talking(t, func(context.Context, func(string, string) string) string { return "done" })
	speaks := func(c *Config) { c.Sources = []tasks.Source{source} }
	f.worker(speaks)
	f.worker(speaks)
	if h, err := desk.FleetOf(f.desk).Pause(operator(t), tasks.Background); err != nil || h.Halt == nil ||
		h.Halt.By != "Ada" {
		t.Fatalf("%+v, %v", h, err)
	}
	paused := f.task("a", "x")
	paused.Class = tasks.Background
	id := f.submit(paused)
	if e := f.ending(f.submit(f.task("b", "x"))); e.Kind != tasks.Answered {
		t.Errorf("another class: %+v", e)
	}
	if text := <-source.said; !strings.HasPrefix(text, "Ada paused background tasks. ") {
		t.Errorf("the thread shows: %s", text)
	}
	s, err := f.desk.Status(t.Context(), id)
	if err != nil || s.State != string(store.Waiting) || s.Attempt != 0 ||
		s.Why != "Ada paused background tasks" {
		t.Errorf("%+v, %v", s, err)
	}
	if l, err := f.desk.List(t.Context(), desk.Filter{State: "waiting"}); err != nil || len(l.Tasks) != 1 ||
		l.Tasks[0].Why != s.Why {
		t.Errorf("list %+v, %v", l, err)
	}
	if got := s.Headline(time.Now()).Text(nil); got != "Waiting: Ada paused background tasks" {
		t.Errorf("headline %s", got)
	}
	if _, err := desk.FleetOf(f.desk).Resume(operator(t), tasks.Background); err != nil {
		t.Fatal(err)
	}
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("after the pause: %+v", e)
	}
}

// A cordoned worker takes nothing and finishes its run, while another worker takes tasks.
func TestCordonedWorker(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	first, second := &fakeAgent{do: func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		close(begun)
		<-goOn
		return answer("finished"), nil
	}}, &fakeAgent{}
	f.worker(with(first))
	running := f.submit(f.task("a", "x"))
	<-begun
	id := ""
	f.workers(func(all []store.Worker) bool { id = all[0].ID; return all[0].Running == 1 })
	if h, err := desk.FleetOf(f.desk).Cordon(operator(t), id); err != nil || h.Halt == nil || h.Halt.By != "Ada" {
		t.Fatalf("%+v, %v", h, err)
	}
	cordoned := func(w store.Worker) bool { return w.ID == id && w.Cordoned && w.Cordon != nil }
	f.workers(func(all []store.Worker) bool { return cordoned(all[0]) })
	waits := f.submit(f.task("b", "x"))
	if s, err := f.desk.Status(t.Context(), waits); err != nil || s.Why != "all workers are cordoned" {
		t.Errorf("without another worker: %+v, %v", s, err)
	}
	stop := f.worker(with(second))
	for _, id := range []string{
		waits, f.submit(f.task("c", "x")), f.submit(f.task("d", "x")), f.submit(f.task("e", "x")),
	} {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("%+v", e)
		}
	}
	if a, b := len(first.specs()), len(second.specs()); a != 1 || b != 4 {
		t.Errorf("the cordoned worker ran %d, the other %d", a, b)
	}
	close(goOn)
	if e := f.ending(running); e.Result.Text != "finished" {
		t.Errorf("its run: %+v", e)
	}
	stop()
	first.do = nil
	if _, err := desk.FleetOf(f.desk).Uncordon(operator(t), id); err != nil {
		t.Fatal(err)
	}
	f.ending(f.submit(f.task("f", "x")))
	if n := len(first.specs()); n != 2 {
		t.Errorf("after the cordon it ran %d", n)
	}
}

// The cordon of a host is also for workers that start there later. That of a worker ends with it.
func TestCordonAndRestart(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	stop := f.worker()
	id := ""
	f.workers(func(all []store.Worker) bool { id = all[0].ID; return true })
	for _, name := range []string{id, host} {
		if _, err := desk.FleetOf(f.desk).Cordon(operator(t), name); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	task := f.submit(f.task("a", "x"))
	f.worker()
	f.workers(func(all []store.Worker) bool { return all[len(all)-1].Cordoned || all[0].Cordoned && all[0].ID != id })
	if s, err := f.desk.Status(t.Context(), task); err != nil || s.Attempt != 0 || s.State != string(store.Waiting) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := desk.FleetOf(f.desk).Uncordon(operator(t), host); err != nil {
		t.Fatal(err)
	}
	f.ending(task) // the new worker has another ID
	for _, name := range []string{host, "unknown"} {
		if _, err := desk.FleetOf(f.desk).Uncordon(operator(t), name); err == nil {
			t.Errorf("%s was not cordoned, and no error says so", name)
		}
	}
	if _, err := desk.FleetOf(f.desk).Cordon(operator(t), "unknown"); err == nil {
		t.Error("an unknown worker was cordoned")
	}
}
