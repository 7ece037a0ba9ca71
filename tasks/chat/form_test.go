package chat

import (
	"errors"
	"net/url"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// A form is the same as a request of the API, and says the same about mistakes.
func TestForm(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	r, thread, err := h.source.Post(t.Context(), h.Desk, url.Values{
		"message": {"one\r\ntwo"}, "repo": {"acme/app"}, "agent": {"@strategist"}, "model": {"opus"}, "effort": {"low"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := h.Status(r.ID).Task
	if got.Prompt != "one\ntwo" || got.Repo != "acme/app" || got.Thread != "chat/"+thread ||
		got.Options != (tasks.Options{Agent: "strategist", Model: "opus", Effort: "low"}) {
		t.Errorf("%+v in %s", got, thread)
	}
	next, same, err := h.source.Post(t.Context(), h.Desk, url.Values{"message": {"more"}, "thread": {thread}})
	if err != nil || same != thread || h.Status(next.ID).Task.Thread != got.Thread {
		t.Errorf("the conversation moved to %s: %v", same, err)
	}
	for name, form := range map[string]url.Values{
		"nothing": {}, "path": {"message": {"x"}, "projectPath": {"/etc"}}, "effort": {"message": {"x"}, "effort": {"-x"}},
	} {
		if _, _, err := h.source.Post(t.Context(), h.Desk, form); err == nil {
			t.Errorf("%s: taken", name)
		} else if _, ok := errors.AsType[*tasks.InputError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
