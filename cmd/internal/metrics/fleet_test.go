package metrics

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// Each class is reported, even if no task waits in it. A postponed task waits from its due time.
func TestFleet(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	b := &fakeFleet{Fleet: Fleet{Unposted: store.Unposted{Endings: 2, Oldest: ago(90)}, Workers: []store.Worker{
		{Slots: 4, Running: 3, Health: []byte(`{"ok":true}`)},
		{Slots: 4, Draining: true, Health: []byte(`{"ok":true}`)},
		{Slots: 2, Health: []byte(`{"ok":false}`)},
		{Slots: 2},
	}}}
	b.Credentials = []store.Credential{
		{Name: "a", Until: ago(-60)}, {Name: "b", Refused: "401"}, {Name: "c", Interval: time.Second},
	}
	b.Memory = store.Memory{Used: 3 << 20, Limit: 4 << 20}
	b.Counts = store.Counts{Waiting: 4, Running: 1, Absorbed: 2} // the record of one waiting task cannot be read
	b.waits(tasks.Interactive, ago(500), ago(20))
	b.waits(tasks.Interactive, ago(30), time.Time{})
	b.waits(tasks.Review, ago(5), ago(-60))
	b.add(tasks.Interactive, store.Running, ago(900), time.Time{})
	r := prometheus.NewRegistry()
	r.MustRegister(newFleet(b.read, rights.Policy{}, func() time.Time { return now }))
	expect(t, r, `
errand_credentials{state="held"} 1
errand_credentials{state="refused"} 1
errand_fleet_up 1
errand_outbox_endings 2
errand_outbox_oldest_seconds 90
errand_queue_oldest_seconds{class="background",pool="default"} 0
errand_queue_oldest_seconds{class="interactive",pool="default"} 30
errand_queue_oldest_seconds{class="review",pool="default"} 0
errand_queue_startable{class="background",pool="default"} 0
errand_queue_startable{class="interactive",pool="default"} 2
errand_queue_startable{class="review",pool="default"} 0
errand_queue_tasks{class="background",pool="default",state="running"} 0
errand_queue_tasks{class="background",pool="default",state="waiting"} 0
errand_queue_tasks{class="interactive",pool="default",state="running"} 1
errand_queue_tasks{class="interactive",pool="default",state="waiting"} 2
errand_queue_tasks{class="review",pool="default",state="waiting"} 1
errand_redis_memory_bytes 3.145728e+06
errand_redis_memory_limit_bytes 4.194304e+06
errand_slots{pool="default"} 12
errand_slots_taken{pool="default"} 3
errand_tasks{state="absorbed"} 2
errand_tasks{state="running"} 1
errand_tasks{state="waiting"} 4
errand_workers{pool="default",state="draining"} 1
errand_workers{pool="default",state="ready"} 1
errand_workers{pool="default",state="unable"} 2
errand_workers_wanted{pool="default"} 1`)
	b.Memory = store.Memory{Used: 1} // without maxmemory, the alert's share would be infinite
	if got := lines(t, r); slices.ContainsFunc(got, func(l string) bool {
		return strings.Contains(l, "_limit_bytes")
	}) {
		t.Errorf("without maxmemory: %q", got)
	}
	b.err = errors.New("redis is down")
	if got := lines(t, r); !slices.Equal(got, []string{"errand_fleet_up 0"}) {
		t.Errorf("without Redis: %q", got)
	}
}

// Each pool is reported for itself: those of repositories, even without workers and tasks, and those with either.
// Limits are for all pools together.
func TestPools(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	b := &fakeFleet{Fleet: Fleet{Workers: []store.Worker{
		{Pool: "gpu", Slots: 2, Running: 1, Credential: "a"}, {Slots: 8, Credential: "b"},
	}}}
	for i := range 6 {
		b.waits(tasks.Interactive, now.Add(-time.Duration(i)*time.Second), time.Time{})
		if rec := &b.Live[i]; i < 3 {
			rec.Pool = "gpu"
		} else {
			rec.Pool, rec.Scopes = "arm", []string{"repo:acme/arm"}
		}
	}
	b.add(tasks.Review, store.Running, now, time.Time{})
	b.Live[6].Pool = "gpu"
	r := prometheus.NewRegistry()
	p := rights.Policy{Pools: []string{"default", "rare"}, Limits: rights.Limits{Repository: 2}}
	r.MustRegister(newFleet(b.read, p, func() time.Time { return now }))
	expect(t, r, `
errand_queue_oldest_seconds{class="interactive",pool="arm"} 5
errand_queue_oldest_seconds{class="interactive",pool="default"} 0
errand_queue_oldest_seconds{class="interactive",pool="gpu"} 2
errand_queue_oldest_seconds{class="interactive",pool="rare"} 0
errand_queue_startable{class="interactive",pool="arm"} 2
errand_queue_startable{class="interactive",pool="default"} 0
errand_queue_startable{class="interactive",pool="gpu"} 3
errand_queue_tasks{class="interactive",pool="arm",state="waiting"} 3
errand_queue_tasks{class="review",pool="gpu",state="running"} 1
errand_slots{pool="default"} 8
errand_slots{pool="gpu"} 2
errand_slots{pool="rare"} 0
errand_slots_taken{pool="gpu"} 1
errand_workers{pool="gpu",state="ready"} 0
errand_workers_wanted{pool="arm"} 1
errand_workers_wanted{pool="default"} 0
errand_workers_wanted{pool="gpu"} 2
errand_workers_wanted{pool="rare"} 0`)
	b.Credentials = []store.Credential{{Name: "a", Refused: "401"}}
	expect(t, r, `
errand_queue_startable{class="interactive",pool="gpu"} 0
errand_queue_startable{class="interactive",pool="arm"} 2`)
}

func TestDisk(t *testing.T) {
	t.Parallel()
	there, missing := prometheus.NewRegistry(), prometheus.NewRegistry()
	NewDisk(there, t.TempDir())
	NewDisk(missing, filepath.Join(t.TempDir(), "not yet"))
	if n := len(lines(t, there)); n != 2 {
		t.Errorf("%d metrics of a disk", n)
	}
	if got := lines(t, missing); len(got) > 0 {
		t.Errorf("of a missing directory: %q", got)
	}
}
