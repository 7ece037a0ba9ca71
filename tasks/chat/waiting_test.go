package chat

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// The stream of a task says why it waits each time that this changes, also after a run and without a worker.
func TestStreamSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	h.source.waitCheck = time.Millisecond
	r := h.ask(`{"message":"x"}`)
	waits := func(why string) {
		t.Helper()
		if e := r.event(); e["type"] != "waiting" || e["content"] != "Waiting: "+why {
			t.Errorf("event %v", e)
		}
	}
	waits("no worker is alive")
	unable := store.Worker{ID: "w", Host: "h", Health: []byte(`{"problem":"too old","sentence":"The CLI is too old."}`)}
	if _, err := h.Store.Workers.Beat(t.Context(), unable); err != nil {
		t.Fatal(err)
	}
	waits("no worker can run tasks: the CLI is too old")
	if err := h.Claim(r.id).Return(t.Context(), store.Wait{Why: "a limit is reached", At: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	waits("a limit is reached")
}

// Whoever names an agent that does not exist hears it at once.
func TestUnknownAgent(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	h.source.offerLimit = time.Minute
	asked := h.Tell(func(string) string {
		return `{"offer":{"agents":[{"name":"reviewer"},{"name":"planner"}],"commands":[],"models":[]}}`
	})
	if p := h.refused(`{"message":"x","agent":"tactician"}`); p.Status != 400 ||
		!strings.Contains(p.Detail, `There is no agent "tactician" here. There are: reviewer, planner.`) {
		t.Errorf("problem %+v", p)
	}
	form := url.Values{"message": {"x"}, "agent": {"tactician"}}
	_, _, err := h.source.Post(t.Context(), h.Desk, form, nil)
	if _, refused := errors.AsType[*tasks.InputError](err); !refused || !strings.Contains(err.Error(), "There are: reviewer") {
		t.Errorf("the form: %v", err)
	}
	h.ask(`{"message":"x","agent":"@planner"}`)
	if n := len(asked()); n == 0 {
		t.Error("no worker was asked")
	}
}
