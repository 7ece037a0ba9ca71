package github

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks/intake"
)

// once is an inbox that interprets no event again, as while polls may find it.
type once struct {
	intake.Inbox
	known map[string]bool
}

// Accept interprets an event with a new ID.
func (o *once) Accept(ctx context.Context, e intake.Event) error {
	if e.Known != maxPollBack || !e.Found {
		return fmt.Errorf("%s is known for %s, found: %t", e.ID, e.Known, e.Found)
	}
	if o.known[e.ID] {
		return nil
	}
	err := o.Inbox.Accept(ctx, e)
	o.known[e.ID] = err == nil
	return err
}

// polled is a front door without webhooks that polls only on request, some time later by its clock. look returns what
// it asked GitHub for.
func polled(t *testing.T) (f front, look func(time.Duration) []githubfake.Call) {
	t.Helper()
	clock := githubfake.NewClock(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), 0)
	w := newWorld(t, githubfake.Config{Now: clock.Now}, []func(*config){func(c *config) {
		c.Hub.Token, c.Hub.Polled, c.Now, c.WebhookSecret, c.QuickPollEvery = "ghp_test", true, clock.Now, "",
			20*time.Second
	}})
	f = w.listen()
	f.hub.Deliver("")
	f.talkers()
	w.src.reconfigure(func(c *Config) {
		c.Repositories, c.Limiter, c.Inbox = []string{repo}, w.db.Memos, &once{Inbox: c.Inbox, known: map[string]bool{}}
	})
	return f, func(d time.Duration) []githubfake.Call {
		t.Helper()
		clock.Pass(d)
		before := len(f.hub.Calls(""))
		if err := w.src.newPoller(f.desk).pollIfDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f.hub.Calls("")[before:]
	}
}

// Without webhooks, quick polls find what people do within one interval, and cost nothing of GitHub's rate limit while
// nobody does anything.
func TestPolling(t *testing.T) {
	t.Parallel()
	f, look := polled(t)
	answers := func(calls []githubfake.Call) map[int]int {
		all := map[int]int{}
		for _, c := range calls {
			all[c.Status]++
		}
		return all
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
	f.comment(n, "ann", "@errand why?")
	look(20 * time.Second)
	if diff := cmp.Diff([]string{"comment by ann", "review by octocat"}, kinds()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	must(f.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "",
		githubfake.Line{Path: "change.go", Line: 1, Body: "@errand and here?"}))
	look(20 * time.Second)
	want := []string{"comment by ann", "comment by ann", "review by octocat"}
	if diff := cmp.Diff(want, kinds()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	look(20 * time.Second)
	for range 3 {
		if asked := answers(look(20 * time.Second)); len(asked) != 1 || asked[http.StatusNotModified] == 0 {
			t.Errorf("a poll of nothing new was answered with %v", asked)
		}
	}
	if asked := answers(look(time.Second)); len(asked) != 0 {
		t.Errorf("a poll that was not due asked %v", slices.Collect(maps.Keys(asked)))
	}
	look(DefaultPollEvery) // a complete one
	if diff := cmp.Diff(want, kinds()); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if resp, err := http.Post(f.url, "application/json", strings.NewReader("{}")); err != nil ||
		resp.StatusCode != http.StatusNotFound {
		t.Errorf("a webhook without a secret: %v, %v", resp, err)
	} else {
		_ = resp.Body.Close()
	}
}

// Pull requests of other tools and people are reviewed, whatever the names of their branches.
func TestPollingFindsBranchesLikeOwnOnes(t *testing.T) {
	t.Parallel()
	f, look := polled(t)
	look(0)
	for _, branch := range []string{"create-pull-request/patch-1569322532", "errand/slack-0123456789"} {
		f.open(func(pr *githubfake.PR) { pr.Head, pr.User = branch, "ann" })
	}
	look(20 * time.Second)
	var got []string
	for _, task := range f.tasks() {
		got = append(got, task.Kind+" by "+task.Actor)
	}
	if diff := cmp.Diff([]string{"review by ann", "review by ann"}, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

// A quick poll reads again what was said since the last complete one. Requests that became no task are answered once.
func TestPollsHandleRemarksOnce(t *testing.T) {
	t.Parallel()
	f, look := polled(t)
	look(0)
	n := f.open()
	writes := func(d time.Duration) (all []string) {
		t.Helper()
		for _, c := range look(d) {
			if c.Method != http.MethodGet {
				all = append(all, c.Method+" "+c.Path)
			}
		}
		return all
	}
	writes(20 * time.Second)
	for _, said := range [][2]string{
		{"cleo", "/help"},
		{"cleo", "/pause"},
		{"ann", "/help"},
		{"ann", "@errand /merge"},
		{"ann", "/pause"},
		{"ann", "/retry"},
	} {
		f.comment(n, said[0], said[1])
	}
	must(f.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "/help"))
	if got := writes(20 * time.Second); len(got) < 7 {
		t.Errorf("the requests were answered by %q", got)
	}
	want := []string{
		"github/cleo () help acme/api#1: 403", "github/cleo () pause acme/api#1: 403",
		"github/ann () pause acme/api#1: 200",
	}
	f.audited(want...)
	for _, pause := range []time.Duration{
		20 * time.Second, 20 * time.Second, DefaultPollEvery, 20 * time.Second,
		DefaultPollEvery,
	} {
		if got := writes(pause); len(got) > 0 {
			t.Errorf("after %s they were answered again by %q", pause, got)
		}
	}
	f.audited(want...)
	// They do not count again as requests of their author.
	for range askBurst - 5 {
		f.comment(n, "ann", "@errand why?")
	}
	look(20 * time.Second)
	if got := len(f.tasks()); got != askBurst-5+1 { // with the review
		t.Errorf("%d tasks", got)
	}
}

// The inbox gets only what may be for errand.
func TestPollsLeaveOtherRemarks(t *testing.T) {
	t.Parallel()
	f, look := polled(t)
	look(0)
	n := f.open()
	own, _ := f.own()
	for _, said := range []string{"Looks good to me.", "/lgtm", "> @errand why?", "`@errand`"} {
		f.comment(n, "ann", said)
	}
	must(f.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "Please rename it."))
	look(20 * time.Second)
	accepted := func() []string {
		box, _ := f.src.cfg.Inbox.(*once)
		return slices.Sorted(maps.Keys(box.known))
	}
	if got := accepted(); len(got) > 0 {
		t.Errorf("events: %q", got)
	}
	f.comment(n, "ann", "@errand why?")
	must(f.hub.Review(t.Context(), repo, own, "ann", "COMMENT", "Please rename it."))
	look(20 * time.Second)
	if got := accepted(); len(got) != 2 {
		t.Errorf("events: %q", got)
	}
}

// A remark that could not be handled is tried again.
func TestPollsHandleFailedRemarksAgain(t *testing.T) {
	t.Parallel()
	f, look := polled(t)
	look(0)
	n := f.open()
	look(20 * time.Second)
	pause := f.comment(n, "ann", "/pause")
	f.hub.Fail(collaborator, githubfake.Failure{Status: 502})
	if err := f.src.newPoller(f.desk).changePollState(t.Context(),
		func(l *pollState) { l.Quick = time.Time{} }); err != nil {
		t.Fatal(err)
	}
	if err := f.src.newPoller(f.desk).pollIfDue(t.Context()); err == nil {
		t.Error("the remark was handled")
	}
	look(20 * time.Second)
	f.signs(n, pause, "eyes", "hooray")
}
