package worker

import (
	"context"
	"os"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// beat writes this worker's heartbeat.
func (w *Worker) beat(ctx context.Context) {
	if w.health.State().At.IsZero() {
		w.health.Check(ctx) // do not announce a worker whose CLI is unchecked
	}
	host, _ := os.Hostname() // it succeeded in New
	pulse, err := w.cfg.Store.Workers.Beat(ctx, store.Worker{
		ID: w.id, Host: host, Version: w.cfg.Version, Pool: w.cfg.Pool, Pid: os.Getpid(), Slots: w.slots.Total(),
		Running: w.slots.Running(), Started: w.started, Draining: w.drained.Err() != nil, Cordoned: w.cordoned.Load(),
		Taking: w.taking.Load(),
		Health: format.JSON(w.health.State().Health), Notices: w.notices(), Digest: w.cfg.Digest, URL: w.cfg.URL,
		Sources: w.sources.Names(), Memory: w.slots.Memory.Known(), Credential: w.cfg.Credential,
	})
	if taking := int64(pulse.Taking); w.peers.Swap(taking) != taking {
		w.health.Nudge()
	}
	if err != nil {
		if ctx.Err() == nil {
			w.cfg.Log.Warn("beat", "worker", w.id, "err", err)
		}
		return
	}
	told := admitted
	if pulse.Cordoned {
		told = cordoned
	}
	if cordonState(w.cordonState.Swap(int32(told))) != told {
		w.health.Nudge()
	}
}

// notices returns what operators should know about this worker: about its configuration, and whether the object store
// answers.
func (w *Worker) notices() []store.Finding {
	if w.cfg.Store.Doctor.Objects() == nil {
		return w.cfg.Notices
	}
	return append(slices.Clone(w.cfg.Notices), store.Finding{
		Severity: store.Warning, What: "The object store does not answer",
		Why:    "Large checkpoints and logs are not saved meanwhile. It is asked again every half minute.",
		Remedy: "Check ERRAND_OBJECTS and the worker's log.",
	})
}

// watchData detects that Redis has lost its data. Only one goroutine calls it. Live runs restore their own records.
func (w *Worker) watchData(ctx context.Context) {
	epoch, lost, err := w.cfg.Store.Doctor.Epoch(ctx, w.epoch)
	if err != nil {
		return // beat logs the error
	}
	known := w.epoch
	w.epoch = epoch
	if known == "" || epoch == known {
		return
	}
	w.cfg.Log.Error("redis lost its data: tasks that waited are gone", "noticed", lost)
}

// cordonState says whether a worker is cordoned. A worker takes no tasks while it is unknown, so that a cordon survives
// a restart of its workers.
type cordonState int32

const (
	unknown cordonState = iota
	admitted
	cordoned
)
