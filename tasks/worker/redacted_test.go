package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/rights"
)

// hides makes workers redact a secret of the fleet, which is returned.
func (f *fleet) hides() (secret string) {
	f.policy.Redactor = agent.NewRedactor("s3cret-value")
	return "s3cret-value"
}

// An ending is redacted: a source may quote a secret in its refusal.
func TestRefusalIsRedacted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secret := f.hides()
	f.source.brief = func(tasks.Task) (tasks.Brief, error) {
		return tasks.Brief{}, &tasks.InputError{Sentence: secret + " is refused."}
	}
	f.worker()
	if e := f.ending(f.submit(f.task("a", "x"))); e.Kind != tasks.Refused || e.Reason != "[redacted] is refused." {
		t.Errorf("ending = %+v", e)
	}
}

// The error of a delivery is redacted, because asynq stores it. This one names the task's source.
func TestErrorOfDeliveryIsRedacted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Redactor = agent.NewRedactor("secretsource")
	task := f.task("a", "x")
	task.Source, task.ID = "secretsource", tasks.NewID(time.Now(), "secretsource", "a")
	id := f.submit(task)
	f.worker()
	await.Until(t, "the delivery fails", func() bool {
		info, err := f.asynq.GetTaskInfo(tasks.Interactive, id)
		if err != nil {
			t.Fatal(err)
		}
		if info.LastErr != "" && !strings.HasSuffix(info.LastErr, "is not set up for [redacted]") {
			t.Errorf("%q", info.LastErr)
		}
		return info.LastErr != ""
	})
}

// searchRedis reports the keys whose values contain a text.
func (f *fleet) searchRedis(text string) {
	f.Helper()
	ctx := context.WithoutCancel(f.Context())
	keys := f.rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		if value := f.rdb.Dump(ctx, keys.Val()).Val(); strings.Contains(value, text) {
			f.Errorf("in %s: %q", keys.Val(), value)
		}
	}
	if err := keys.Err(); err != nil {
		f.Error(err)
	}
}

// An offer that fails is redacted: the error may hold the address of a repository, or what the CLI has said.
func TestOfferIsRedacted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secret := f.hides()
	f.policy.Repository = func(string) (rights.Repository, bool) { return rights.Repository{Trusted: true}, true }
	f.agent.offered = fmt.Errorf("run %s", secret)
	f.worker()
	_, err := f.desk.Offer(t.Context(), capacity.Where{})
	if failed, ok := errors.AsType[*capacity.CLIError](err); !ok || failed.Message != "run [redacted]" {
		t.Errorf("of the CLI: %v", err)
	}
	_, err = f.desk.Offer(t.Context(), capacity.Where{Repo: "acme/" + secret})
	input, ok := errors.AsType[*tasks.InputError](err)
	if !ok || !strings.Contains(input.Sentence, "[redacted]") || strings.Contains(input.Sentence, secret) {
		t.Errorf("of the clone: %v", err)
	}
}

// The refusal of a task that a run was to absorb is redacted.
func TestRefusalInARunIsRedacted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	secret, runs := f.hides(), f.converses()
	f.source.brief = func(t tasks.Task) (tasks.Brief, error) {
		if t.Prompt == "two" {
			return tasks.Brief{}, &tasks.InputError{Sentence: "Not " + secret + "."}
		}
		return tasks.Brief{}, nil
	}
	f.worker()
	f.submit(f.task("a", "one"))
	run := <-runs
	second := f.submit(f.task("a", "two"))
	f.submit(f.task("a", "three"))
	run.take(run.next())
	if e := f.ending(second); e.Reason != "Not [redacted]." {
		t.Errorf("%+v", e)
	}
	run.end <- answer("one and three")
}
