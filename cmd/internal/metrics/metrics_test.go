package metrics

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
)

// fakeFleet is a fleet for tests.
type fakeFleet struct {
	Fleet
	err error
}

func (f *fakeFleet) read(context.Context) (Fleet, error) { return f.Fleet, f.err }

func (f *fakeFleet) waits(class string, created, at time.Time) {
	f.add(class, store.Waiting, created, at)
}

func (f *fakeFleet) add(class string, s store.State, c, at time.Time) {
	id := strconv.Itoa(len(f.Live))
	f.Live = append(f.Live, store.LiveRecord{Record: store.Record{
		ID: id, Thread: id, Class: class, State: s, Created: c, At: at,
	}})
}

// everything returns a registry in which each metric has a value.
func everything(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := NewRegistry("v1")
	NewFleet(r, rights.Policy{}, (&fakeFleet{Fleet: Fleet{Memory: store.Memory{Used: 1, Limit: 2}}}).read)
	NewDisk(r, t.TempDir())
	NewDesk(r).Submitted(tasks.Task{Source: "chat", Class: tasks.Interactive}, desk.Receipt{New: true})
	service := NewServices(r).Transport("github", http.NewFileTransportFS(fstest.MapFS{}))
	resp, err := service.RoundTrip(httptest.NewRequest(http.MethodGet, "/missing", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	m, task := NewTasks(r, nil), tasks.Task{Source: "chat", Class: tasks.Interactive}
	m.Began(task, time.Second)
	m.Ran(task, agent.Result{Signal: "SIGKILL", API: &agent.API{Calls: 2, Errors: map[int]int{529: 1}}})
	m.Ended(task, tasks.Ending{Kind: tasks.Answered}, time.Second)
	return r
}

// The table in docs/metrics.md lists exactly errand's metrics, and their names follow Prometheus' rules.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	r := everything(t)
	problems, err := testutil.GatherAndLint(r)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "errand_") {
			have = append(have, f.GetName())
		}
	}
	doc, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(errand_[a-z_]+)`").FindAllSubmatch(doc, -1) {
		documented = append(documented, string(row[1]))
	}
	slices.Sort(documented)
	if diff := cmp.Diff(have, documented); diff != "" {
		t.Errorf("docs/metrics.md (-metrics +table):\n%s", diff)
	}
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../../../README.md", "../../../bench/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\berrand_[a-z_]*[a-z]\b`).FindAllString(string(text), -1) {
			if metric := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""); !slices.Contains(have, name) && !slices.Contains(have, metric) {
				t.Errorf("%s names %s, which is no metric", file, name)
			}
		}
	}
}

// expect checks that a scrape contains these lines.
func expect(t *testing.T, r *prometheus.Registry, want string) {
	t.Helper()
	got := lines(t, r)
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		if !slices.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, strings.Join(got, "\n"))
		}
	}
}

// lines returns the lines of a scrape, without comments.
func lines(t *testing.T, r *prometheus.Registry) (list []string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(r, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v", w.Code, err)
	}
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}
