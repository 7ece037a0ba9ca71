package chat

import (
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A form is the same as a request of the API, and reports mistakes in the same words.
func TestForm(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	r, thread, err := h.source.Post(t.Context(), h.Desk, url.Values{
		"message": {"one\r\ntwo"}, "repo": {"acme/app"}, "also": {"acme/web"}, "agent": {"@strategist"},
		"model": {"opus"}, "effort": {"low"}, "branch": {"next"}, "budget": {"$1.50"}, "timeout": {"20m"},
		"profile": {"read"}, "plan": {"1"}, "directory": {"services/api"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := h.Status(r.ID).Task
	if got.Prompt != "one\ntwo" || got.Repo != "acme/app" || !slices.Equal(got.Also, []string{"acme/web"}) ||
		got.Thread != "chat/"+thread ||
		got.Ref != "next" || got.Profile != agent.Read ||
		got.Options != (tasks.Options{
			Agent: "strategist", Model: "opus", Effort: "low", MaxUSD: 1.5, Limit: 20 * time.Minute, Plan: true,
			Directory: "services/api",
		}) {
		t.Errorf("%+v in %s", got, thread)
	}
	next, same, err := h.source.Post(t.Context(), h.Desk, url.Values{"message": {"more"}, "thread": {thread}}, nil)
	if err != nil || same != thread || h.Status(next.ID).Task.Thread != got.Thread ||
		h.Status(next.ID).Task.Profile != agent.Write {
		t.Errorf("the conversation moved to %s: %v", same, err)
	}
	for name, form := range map[string]url.Values{
		"nothing": {}, "path": {"message": {"x"}, "projectPath": {"/etc"}},
		"effort": {"message": {"x"}, "effort": {"-x"}}, "budget": {"message": {"x"}, "budget": {"much"}},
		"timeout": {"message": {"x"}, "timeout": {"3"}}, "branch": {"message": {"x"}, "branch": {"next"}},
	} {
		if _, _, err := h.source.Post(t.Context(), h.Desk, form, nil); err == nil {
			t.Errorf("%s: taken", name)
		} else if _, ok := errors.AsType[*tasks.InputError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
