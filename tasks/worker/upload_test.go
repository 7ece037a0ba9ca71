package worker

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// keptLog reads the stored parts of a log.
func (f *fleet) keptLog(id, name string) []string {
	f.Helper()
	parts, err := f.store.Log(f.Context(), id, name)
	if err != nil {
		f.Fatal(err)
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, string(p.Data))
	}
	return texts
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Each run stores its own part, also when it is returned, and also on a disk that has the earlier parts.
func TestRunsLeaveTheirLogs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	disk := func(c *Config) { c.LogDir = t.TempDir() }
	shared := t.TempDir()
	onShared := func(c *Config) { c.LogDir = shared }
	dirs := make(chan string, 3)
	started := make(chan string, 3)
	until := untilStopped(started)
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		dir := <-dirs
		appendTo(t, filepath.Join(dir, s.ID+".log"), "for people\n")
		appendTo(t, filepath.Join(dir, s.ID+".ndjson"), "{}\n")
		if len(dirs) == 0 {
			return answer("done"), nil
		}
		return until(ctx, s, h)
	}
	dirs <- shared
	dirs <- shared
	dirs <- t.TempDir() // and so no part of this one, whose worker writes elsewhere
	stop := f.worker(onShared)
	id := f.submit(f.task("a", "x"))
	<-started
	stop() // returned
	stop = f.worker(onShared)
	<-started
	stop()
	if diff := cmp.Diff([]string{"for people\n", "for people\n"}, f.keptLog(id, tasks.PeopleLog)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"{}\n", "{}\n"}, f.keptLog(id, tasks.RawLog)); diff != "" {
		t.Error(diff)
	}
	f.worker(disk)
	f.ending(id)
	f.stopAll()
	if got := f.keptLog(id, tasks.PeopleLog); len(got) != 2 {
		t.Errorf("a run without a log left %q", got)
	}
}

// The worker publishes the address at which its logs can be read, and the memory it has for runs.
func TestWorkerTellsOfItself(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(func(c *Config) { c.URL, c.Memory = "http://w1.example:8081", func() int64 { return 3 << 30 } })
	w.beat(t.Context())
	workers, err := f.store.Workers.List(t.Context())
	if err != nil || len(workers) != 1 || workers[0].URL != "http://w1.example:8081" || workers[0].ID != w.id ||
		workers[0].Memory != 3<<30 || !strings.HasPrefix(w.id, workers[0].Host+"-") {
		t.Errorf("workers %+v, %v", workers, err)
	}
}

// However much an agent writes and in however small pieces, its stream stays bounded, and every event that is still in
// it is complete.
func TestStreamIsBoundedUnderDeltas(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = func(_ context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		for n := range 50_000 {
			h.Event(agent.Event{Kind: agent.Text, Text: "piece of text "})
			switch {
			case n%5_000 == 0:
				h.Event(agent.Event{Kind: agent.Text, Text: strings.Repeat("\x01", 40_000)}) // six bytes each, as JSON
			case n%7 == 0:
				h.Event(agent.Event{Kind: agent.ToolUse, Tool: "Bash", Text: strings.Repeat("y", 30_000)})
			}
		}
		return answer("done"), nil
	}
	const most = 200
	small := f.open(store.Config{Redis: f.redis(), EventCap: most})
	f.worker(func(c *Config) { c.Store = small })
	id := f.submit(f.task("a", "x"))
	f.ending(id)
	seen, after := 0, ""
	for {
		events, err := f.store.Events.Read(t.Context(), id, after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			seen++
			if len(e.Data) > 16<<10 || !e.End && !json.Valid(e.Data) {
				t.Errorf("event %s of %d bytes", e.ID, len(e.Data))
			}
		}
		after = events[len(events)-1].ID
	}
	if seen != most {
		t.Errorf("%d events, want the latest %d", seen, most)
	}
}
