package github

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/githubfake"
)

// Without webhooks, quick polls find what people do within one interval, and cost nothing of GitHub's rate limit while nobody
// does anything.
func TestPolling(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	var passed atomic.Int64
	clock := func() time.Time { return begun.Add(time.Duration(passed.Load())) }
	w := newWorld(t, githubfake.Config{Now: clock}, []func(*config){func(c *config) {
		c.Hub.Token, c.Hub.Polled, c.Now, c.WebhookSecret, c.Poll = "ghp_test", true, clock, "", 20*time.Second
	}})
	f := w.listen()
	f.hub.Deliver("")
	f.talkers()
	w.src.reconfigure(func(c *Config) { c.Repositories = []string{repo} })
	p := w.src.newPoller(f.desk) // one process, which remembers answers
	look := func(d time.Duration) (asked map[int]int) {
		t.Helper()
		passed.Add(int64(d))
		before := len(f.hub.Calls(""))
		if err := p.lookIfDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		asked = map[int]int{}
		for _, c := range f.hub.Calls("")[before:] {
			asked[c.Status]++
		}
		return asked
	}
	kinds := func() (all []string) {
		t.Helper()
		for _, task := range f.tasks() {
			all = append(all, task.Kind+" by "+task.Actor)
		}
		slices.Sort(all)
		return all
	}
	look(0)
	n := f.open()
	passed.Add(int64(time.Second))
	f.comment(n, "ann", "@errand why?")
	look(19 * time.Second)
	if diff := cmp.Diff([]string{"comment by ann", "review by octocat"}, kinds()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	must(f.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "", githubfake.Line{Path: "change.go", Line: 1, Body: "@errand and here?"}))
	look(20 * time.Second)
	want := []string{"comment by ann", "comment by ann", "review by octocat"}
	if diff := cmp.Diff(want, kinds()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	look(20 * time.Second)
	for range 3 {
		if asked := look(20 * time.Second); len(asked) != 1 || asked[http.StatusNotModified] == 0 {
			t.Errorf("a poll of nothing new was answered with %v", asked)
		}
	}
	if asked := look(time.Second); len(asked) != 0 {
		t.Errorf("a poll that was not due asked %v", slices.Collect(maps.Keys(asked)))
	}
	look(DefaultLook) // a complete one
	if diff := cmp.Diff(want, kinds()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if resp, err := http.Post(f.url, "application/json", strings.NewReader("{}")); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("a webhook without a secret: %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
}
