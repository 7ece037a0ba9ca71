package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
)

// local is a source with one local directory.
type local struct {
	*fakeSource

	dir string
}

func (l local) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{Directory: func(path string) (string, error) {
		if path != "/link" {
			return "", errors.New("it is closed")
		}
		return l.dir, nil
	}}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	f := newRemote(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.policy.Repository = func(name string) (rights.Repository, bool) {
		return rights.Repository{Trusted: true, Profile: agent.Read}, name == "acme/api"
	}
	f.policy.Fleet.Model = "opus"
	f.worker(f.disk(t.TempDir()), func(c *Config) { c.Sources = []tasks.Source{local{f.source, dir}} })

	for range 2 { // the second time it is known
		o, err := f.desk.Offer(t.Context(), capacity.Where{Dir: "/link"})
		if err != nil || len(o.Agents) != 1 || !o.Configured {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if o, err := f.desk.Offer(t.Context(), capacity.Where{Repo: "acme/api"}); err != nil || o.Configured {
		t.Errorf("ignored settings are offered: %+v, %v", o, err)
	}
	if _, err := f.desk.Offer(t.Context(), capacity.Where{}); err != nil {
		t.Error(err)
	}
	for _, closed := range []capacity.Where{{Dir: "/etc"}, {Repo: "acme/other"}, {Repo: "acme/api", Dir: "/link"}} {
		if _, err := f.desk.Offer(t.Context(), closed); err == nil {
			t.Errorf("%+v is open", closed)
		} else if _, ok := errors.AsType[*tasks.InputError](err); !ok {
			t.Errorf("%+v: %v", closed, err)
		}
	}
	f.agent.mu.Lock()
	defer f.agent.mu.Unlock()
	if n := len(f.agent.offers); n != 3 {
		t.Fatalf("the CLI was asked %d times", n)
	}
	if s := f.agent.offers[0]; s.Dir != dir || !s.TrustedConfig || s.Profile != agent.Write || s.Model != "opus" {
		t.Errorf("in a local directory: %+v", s)
	}
	for _, s := range f.agent.offers[1:] {
		if s.TrustedConfig || s.Dir == dir {
			t.Errorf("where nothing is trusted: %+v", s)
		}
	}
	if s := f.agent.offers[1]; s.Profile != agent.Read || len(s.Instructions) != 1 {
		t.Errorf("where nothing may be written: %+v", s)
	}
}

func TestOfferOfACLIThatFails(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.offered = agent.NewError(agent.ClassStart, "it does not start")
	f.worker()
	_, err := f.desk.Offer(t.Context(), capacity.Where{})
	if e, ok := errors.AsType[*agent.Error](err); !ok || e.Class != agent.ClassStart {
		t.Errorf("%v", err)
	}
}

// A worker whose CLI does not work does not reply, because another may.
func TestOfferThatNobodyTells(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.health = agent.NewError(agent.ClassAuth, "no credential")
	w := f.idle()
	w.health.Check(t.Context())
	ctx, cancel := context.WithCancelCause(t.Context())
	told := make(chan error, 1)
	go func() {
		_, err := f.desk.Offer(ctx, capacity.Where{})
		told <- err
	}()
	asked := func() bool { return f.rdb.LLen(t.Context(), "errand:inquiries").Val() == 1 }
	await.Until(t, "the inquiry is there", func() bool { return asked() || len(told) > 0 })
	var answering sync.WaitGroup
	answering.Go(func() { w.offers.answer(ctx) })
	answered := func() bool { return len(told) > 0 }
	const (
		test    = "worker.TestOfferThatNobodyTells.func"
		waiting = "]:\ngithub.com/errand-fleet/errand/store.(*hints).waitFor(" // and not in a call of it
	)
	if !goroutines.Await(answered, 1, test, "worker.(*offerer).answer(", waiting) || !asked() {
		t.Error("the worker took the question")
	}
	cancel(desk.ErrNoAnswer)
	if err := <-told; !errors.Is(err, desk.ErrNoAnswer) {
		t.Errorf("%v", err)
	}
	answering.Wait()
	if n := len(f.agent.offers); n != 0 {
		t.Errorf("the CLI was asked %d times", n)
	}
}
