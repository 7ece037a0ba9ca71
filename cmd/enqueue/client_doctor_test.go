package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	check := func(code int, want ...string) {
		t.Helper()
		got, out, errs := f.run("doctor")
		if got != code || errs != "" {
			t.Errorf("exit %d, want %d: %s", got, code, errs)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%q is not in\n%s", w, out)
			}
		}
	}
	beat := func(w store.Worker) {
		t.Helper()
		if err := f.Store.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	check(1, "error    no worker is alive", "Start `worker`", "ok       Redis answers")
	f.submit("wait")
	beat(store.Worker{ID: "w1", Version: "v1", Slots: 4, Running: 1, Health: json.RawMessage(
		`{"ok":true,"version":"2.1.329","sandbox":"none","notices":["the agent's tools can read this process's memory"]}`)})
	beat(store.Worker{ID: "w2", Draining: true})
	check(0, "worker w1 (v1): 1 of 4 slots taken, CLI 2.1.329, sandbox none", "warning  worker w1\n", "the agent's tools can read",
		"note     worker w2 is shutting down", "warning  appendonly is off", "0 tasks run, 1 wait\n")
	if err := f.Store.Hold(t.Context(), "k1", time.Now().Add(time.Hour), 0, "the limit is reached"); err != nil {
		t.Fatal(err)
	}
	if err := f.Store.Slow(t.Context(), "k2"); err != nil {
		t.Fatal(err)
	}
	check(0, "note     credential k1: no run starts before ", "the limit is reached\n", "note     credential k2: runs start 1s apart\n")
	beat(store.Worker{ID: "w3", Health: json.RawMessage(`{"ok":false,"problem":"claude has no credential","remedy":"set ANTHROPIC_API_KEY"}`)})
	check(1, "error    worker w3 runs no tasks\n", "claude has no credential\n", "set ANTHROPIC_API_KEY\n")

	code, out, _ := f.run("doctor", "-json")
	var answer struct{ Workers []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &answer); code != 1 || err != nil || len(answer.Workers) != 3 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	if code, _, errs := f.run("doctor", "me"); code != 2 || !strings.Contains(errs, "usage: enqueue doctor [-json]") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A Redis that would drop tasks is an error, although everything runs for now; and so is one that is gone.
func TestDoctorOfRedis(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if err := f.Store.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][2]string{{"maxmemory", "1gb"}, {"maxmemory-policy", "volatile-ttl"}} {
		if err := f.redis.ConfigSet(t.Context(), args[0], args[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, _ := f.run("doctor"); code != 1 || !strings.Contains(out, "error    maxmemory-policy is volatile-ttl\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	_ = f.redis.Close()
	if code, out, _ := f.run("doctor"); code != 1 || !strings.Contains(out, "error    Redis does not answer\n") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// What a front door says of its sources is told; one without events has to be mended.
func TestDoctorOfSources(t *testing.T) {
	t.Parallel()
	var f fleet
	if err := json.Unmarshal([]byte(`{"redis":"ok","workers":[{"id":"w"}],"tasks":{"waiting":2,"held":1},"sources":[
		{"name":"slack","problem":"connect to Slack: invalid_auth"},{"name":"mail"},{"name":"post","last_event":"2026-01-02T03:04:05Z"}]}`), &f); err != nil {
		t.Fatal(err)
	}
	r := f.examine()
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{
		"error    no events come from slack\n           connect to Slack: invalid_auth\n", "ok       mail: no event has come yet\n",
		"ok       post: the last event came at 2026-01-02 03:04:05 UTC\n", "ok       0 tasks run, 2 wait, 1 of them until a certain time\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if !r.bad() {
		t.Error("all is well")
	}
}
