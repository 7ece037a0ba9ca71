package attempt

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Why a task waits is redacted, because it is stored and shown. So is the message that says it in the thread.
func TestReasonToWaitIsRedacted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const secret = "s3cret-value"
	f.policy.Redactor = agent.NewRedactor(secret)
	w := f.idle()
	parkedFor := func(what string) error {
		return &retryError{Wait: store.Wait{Why: secret, Parked: what}}
	}
	for name, c := range map[string]struct {
		cause error
		why   Return
		says  bool // in the thread
	}{
		"a source":           {&tasks.ErrLater{Why: secret}, ReturnWait, false},
		"a held credential":  {heldError{&tasks.ErrLater{Why: secret}}, ReturnWait, true},
		"a held model":       {heldError{&tasks.ErrLater{Why: secret, Tell: outageKey}}, ReturnWait, true},
		"a failed run":       {parkedFor(""), ReturnRetry, false},
		"a limit of a run":   {parkedFor(parkLimit), ReturnParked, true},
		"an outage in a run": {parkedFor(parkOutage), ReturnParked, true},
	} {
		wait := w.waitAfter(store.Record{}, c.cause)
		if wait.Why != "[redacted]" || wait.reason != c.why {
			t.Errorf("%s: %+v", name, wait)
		}
		if strings.Contains(wait.message, secret) || strings.Contains(wait.message, "[redacted]") != c.says {
			t.Errorf("%s: %q", name, wait.message)
		}
	}
}

// A notice of a run is redacted.
func TestNoticeIsRedacted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const secret = "s3cret-value"
	f.policy.Redactor = agent.NewRedactor(secret)
	w := f.idle()
	id := f.submit(f.task("a", "x"))
	run := f.claimed(w, id)
	defer w.handOn(run)
	w.notice(run, "not with "+secret)
	events, err := f.store.Events.Read(t.Context(), id, "", 10)
	if err != nil || len(events) != 1 || !strings.Contains(string(events[0].Data), `"not with [redacted]"`) {
		t.Errorf("%+v, %v", events, err)
	}
}
