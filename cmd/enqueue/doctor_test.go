package main

import (
	"encoding/json"
	"net/http"
	"strconv"
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
		if _, err := f.Store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	check(1, "error    no worker is alive", "Start a worker with the same REDIS_URL", "ok       Redis answers",
		"ok       the front door answers at http://127.0.0.1:")
	f.submit("wait")
	beat(store.Worker{ID: "w1", Version: "v1", Slots: 4, Running: 1, Health: json.RawMessage(
		`{"ok":true,"version":"2.1.332","sandbox":"none","notices":["the agent's tools can read this process's memory\u001b[2J"]}`)})
	beat(store.Worker{ID: "w2", Draining: true})
	check(0, "worker w1, version v1, 1 of 4 slots in use\n", "\nok       w1: the CLI is version 2.1.332\n",
		"\nwarning  w1: the agent's tools can read this process's memory\n", "worker w2, version unknown",
		"\nnote     w2: it is shutting down",
		"warning  Redis runs without appendonly", "tasks: 0 running, 1 waiting\n")
	if err := f.Store.Credentials.Hold(t.Context(), "k1", time.Now().Add(time.Hour), 0,
		"the limit is reached"); err != nil {
		t.Fatal(err)
	}
	if err := f.Store.Credentials.Slow(t.Context(), "k2"); err != nil {
		t.Fatal(err)
	}
	check(1, "error    credential k1: no run starts before ", "the limit is reached\n",
		"note     credential k2: runs start 1s apart\n")
	if err := f.redis.Del(t.Context(), "errand:credential:k1").Err(); err != nil {
		t.Fatal(err)
	}
	check(0)
	if err := f.Store.Credentials.Refuse(t.Context(), "k2", "authentication failed"); err != nil {
		t.Fatal(err)
	}
	check(1, "error    credential k2: the model refuses it\n", "authentication failed\n")
	if err := f.Store.Credentials.Ease(t.Context(), "k2"); err != nil {
		t.Fatal(err)
	}
	check(0)
	beat(store.Worker{ID: "w4", Pool: "gpu", Slots: 2})
	check(0, "worker w4, version unknown, pool gpu, 0 of 2 slots in use\n",
		"pool default: workers 2, slots in use 1 of 4, tasks waiting 1\n",
		"pool gpu: workers 1, slots in use 0 of 2, tasks waiting 0\n")
	if err := f.redis.HSet(t.Context(), "errand:task:"+f.submit("wait"), "pool", "arm").Err(); err != nil {
		t.Fatal(err)
	}
	check(1, "error    no worker of pool arm is running\n", "Waiting tasks: 1.\n",
		"Start a worker with ERRAND_POOL=arm, or ")
	beat(store.Worker{ID: "w5", Pool: "arm"})
	check(0)
	beat(store.Worker{
		ID:     "w3",
		Health: json.RawMessage(`{"ok":false,"problem":"claude has no credential","remedy":"set ANTHROPIC_API_KEY"}`),
	})
	check(1, "error    w3: it cannot run tasks: claude has no credential\n", "set ANTHROPIC_API_KEY\n",
		"\nok       w1, w4, w5: it takes tasks\n", "\nchecks: error 1, warning 2, note 2, ok 4\n")

	code, out, _ := f.run("doctor", "--json")
	var answer struct{ Workers []struct{ ID string } }
	if err := json.Unmarshal([]byte(out), &answer); code != 1 || err != nil || len(answer.Workers) != 5 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// A finding names the workers that it is about, if they are few.
func TestFindingsOfWorkers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "w0: old", 4: "w0, w1, w2, w3: old", 5: "5 workers: old"} {
		var f fleetHealth
		text := strings.TrimSuffix(strings.Repeat(`{"id":"w%d","checks":[{"what":"old"}]},`, n), ",")
		for i := range n {
			text = strings.Replace(text, "%d", strconv.Itoa(i), 1)
		}
		if err := json.Unmarshal([]byte(`{"workers":[`+text+`]}`), &f); err != nil {
			t.Fatal(err)
		}
		if got := f.findings(nil); len(got) != 1 || got[0].What != want {
			t.Errorf("%d workers: %+v, want %s", n, got, want)
		}
	}
}

// A Redis that would drop tasks is an error, although everything runs for now; and so is one that is gone.
func TestDoctorOfRedis(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if _, err := f.Store.Workers.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][2]string{{"maxmemory", "1gb"}, {"maxmemory-policy", "volatile-ttl"}} {
		if err := f.redis.ConfigSet(t.Context(), args[0], args[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, _ := f.run("doctor"); code != 1 ||
		!strings.Contains(out, "error    Redis runs with maxmemory-policy volatile-ttl\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	_ = f.redis.Close()
	if code, out, _ := f.run("doctor"); code != 1 || !strings.Contains(out, "error    Redis does not answer\n") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// The other findings are printed if Redis does not answer.
func TestDoctorTellsTheRest(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	_ = f.redis.Close()
	f.services = []store.Finding{{Severity: store.Warning, What: "no scope"}}
	code, out, errs := f.run("doctor")
	if code != 1 || errs != "" || !strings.Contains(out, "error    Redis does not answer\n") ||
		!strings.Contains(out, "warning  no scope\n") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

func TestDoctorOfServices(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if _, err := f.Store.Workers.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	f.services = []store.Finding{{What: "Slack knows us"}, {
		Severity: store.Warning, What: "no scope", Why: "no files", Remedy: "Add it.",
	}}
	code, out, errs := f.run("doctor")
	if code != 0 || !strings.Contains(out, "ok       Slack knows us\n") ||
		!strings.Contains(out, "warning  no scope\n") || !strings.Contains(out, "Add it.\n") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	f.services = []store.Finding{{Severity: store.Fatal, What: "no token", Why: "x"}}
	if code, out, _ := f.run("doctor"); code != 1 || !strings.Contains(out, "error    no token\n") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// A role for some repositories sees no findings about services, which is no failure.
func TestDoctorOfALimitedRole(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if _, err := f.Store.Workers.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	f.services = []store.Finding{{Severity: store.Fatal, What: "no token"}}
	body := strings.NewReader(`{"name": "ci", "role": "viewer", "repositories": ["acme/api"], "days": 1}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.server.URL+"/api/tokens", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var made struct{ Token string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Token == "" {
		t.Fatalf("%s, %v", resp.Status, err)
	}
	f.env["ERRAND_CONSOLE_TOKEN"] = made.Token
	code, out, errs := f.run("doctor")
	if code != 0 || !strings.Contains(out, "note     cannot check Slack, GitHub and the model\n") ||
		strings.Contains(out, "no token") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
}

// With a repository, doctor says what a run there would get, and fails if there can be none.
func TestDoctorOfARepository(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for _, args := range [][]string{{"doctor", "--repo", "acme/api"}, {"doctor", "--json", "--repo", "acme/api"}} {
		if code, out, errs := f.run(args...); code != 1 || errs != "" || !strings.Contains(out, "no worker is alive") {
			t.Errorf("exit %d, %s%s", code, out, errs)
		}
	}
	if _, err := f.Store.Workers.Beat(t.Context(),
		store.Worker{ID: "w", Health: json.RawMessage(`{"ok":true}`)}); err != nil {
		t.Fatal(err)
	}
	f.Tell(func(string) string {
		return `{"outlook":{"facts":[{"name":"set-up","values":["npm ci","make\u001b[2J"]},{"name":"path","values":[]}],"findings":[{"severity":"warning","what":"no sandbox"}]}}`
	})
	want := "pool                     default\nworkers alive            1\nset-up                   npm ci\n                         make\npath                     –\n\nwarning  no sandbox\n"
	if code, out, errs := f.run("doctor", "--repo", "acme/api"); code != 0 || errs != "" ||
		!strings.HasSuffix(out, want) {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}
