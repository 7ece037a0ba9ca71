package github

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

const renovate = "renovate[bot]"

// Listed bots give orders. They are no people: they control nothing, and are not argued with.
func TestListedBots(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		bots  []string
		who   string
		said  string
		tasks int
	}{
		"by default":          {nil, renovate, "@errand why?", 0},
		"another one":         {[]string{"dependabot[bot]"}, renovate, "@errand why?", 0},
		"a mention":           {[]string{"Renovate[bot]"}, renovate, "@errand why?", 1},
		"a command":           {[]string{renovate}, renovate, "/fix", 1},
		"no word to us":       {[]string{renovate}, renovate, "Bumped.", 0},
		"no command":          {[]string{renovate}, renovate, "/nothing @errand", 0},
		"a control":           {[]string{renovate}, renovate, "/pause", 0},
		"an answer":           {[]string{renovate}, renovate, "/approve", 0},
		"ourselves":           {[]string{"errand[bot]", "errand"}, "errand", "@errand why?", 0},
		"what has our marker": {[]string{renovate}, renovate, "<!-- errand:reply x -->\n@errand why?", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withToken(t, func(c *config) { c.Bots = row.bots })
			n := w.quietOpen()
			f := w.listen()
			id := f.comment(n, row.who, row.said)
			if got := len(f.tasks()); got != row.tasks {
				t.Fatalf("%d tasks, want %d", got, row.tasks)
			}
			if row.tasks > 0 {
				w.signs(n, id, eyes)
			}
			p, _ := w.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: n})
			if p.Paused || len(w.ours(n)) != 0 {
				t.Errorf("%+v, %q", p, w.ours(n))
			}
		})
	}
}

// A bot needs the permission that GitHub tells of it. Where GitHub does not know it as a user, the list is its
// permission.
func TestPermissionOfBots(t *testing.T) {
	t.Parallel()
	w := withToken(t, func(c *config) { c.Bots = []string{renovate, "mallory"} })
	o := thread.Ref{Repo: repo, Number: w.quietOpen()}
	for _, row := range []struct {
		login, set string
		unknown    bool
		want       bool
	}{
		{renovate, "", true, true},
		{"mallory", "", true, false},
		{"other[bot]", "", true, false},
		{renovate, "read", false, false},
		{renovate, "write", false, true},
	} {
		w.src = w.again() // with empty caches
		if row.unknown {
			w.hub.Fail(collaborator, githubfake.Failure{Status: 404})
		} else {
			w.hub.SetPermission(repo, row.login, row.set)
		}
		if v, err := w.src.gate.MayRequest(t.Context(), o, row.login); err != nil || v.Allowed != row.want {
			t.Errorf("%+v: %+v, %v", row, v, err)
		}
	}
}

// A bot's request counts as automatic work: it should stop at the limit, say so once, and start again when a person
// asks. A stranger's code is not looked at for it.
func TestBotsComeToAnEnd(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	w.src = w.source(func(c *config) { c.Hub.Token, c.Bots = "ghp_test", []string{renovate} })
	w.hub.SetPermission(repo, renovate, "write")
	n := w.quietOpen()
	fork := w.quietOpen(func(pr *githubfake.PR) { pr.Head, pr.Fork, pr.User = "theirs", true, "mallory" })
	f := w.listen()
	var refused []string
	for i := range subject.MaxRounds + 2 {
		f.comment(n, renovate, fmt.Sprintf("@errand again, %d", i))
		task := f.latestTask()
		for range 2 { // it is tried again, and counted once
			_, err := w.src.Brief(t.Context(), task, "")
			input, _ := asInput(err)
			if refused = append(refused, input); err == nil {
				continue
			}
			w.close(task, tasks.Ending{Kind: tasks.Refused, Reason: input, At: ended})
		}
	}
	want := slices.Concat(make([]string, 2*subject.MaxRounds), []string{subject.LimitReached, subject.LimitReached},
		slices.Repeat([]string{"A person has already been asked to continue."}, 2))
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}
	if got := len(w.ours(n)); got != 1 {
		t.Errorf("said %d times: %q", got, w.ours(n))
	}
	f.comment(n, "ann", "@errand go on")
	if _, err := w.src.Brief(t.Context(), f.latestTask(), ""); err != nil {
		t.Error(err)
	}
	f.comment(n, renovate, "@errand and again")
	if _, err := w.src.Brief(t.Context(), f.latestTask(), ""); err != nil {
		t.Error(err)
	}
	before := len(f.tasks())
	f.comment(fork, renovate, "/review")
	if got := len(f.tasks()); got != before {
		t.Errorf("%d tasks more", got-before)
	}
}

// A push in the middle of a review that a bot has asked for is reviewed as if the bot had not.
func TestPushEndsWhatABotAskedFor(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	w.src = w.source(func(c *config) { c.Hub.Token, c.Bots = "ghp_test", []string{renovate} })
	w.hub.SetPermission(repo, renovate, "write")
	n := w.quietOpen()
	f := w.listen()
	id := f.comment(n, renovate, "/review full")
	if _, err := w.src.Brief(t.Context(), f.only(), ""); err != nil {
		t.Fatal(err)
	}
	head := must(w.hub.PushPR(t.Context(), repo, n, map[string]string{"a.go": "package a\n"}))
	next := f.only()
	if b, err := w.src.Brief(t.Context(), next, ""); err != nil || next.Ref != head || next.Actor != "octocat" {
		t.Errorf("%v, %+v, %+v", err, next, b)
	}
	w.close(next, answered("Fine."))
	w.signs(n, id, "eyes", "hooray")
}

func asInput(err error) (string, bool) {
	input, ok := err.(*tasks.InputError) //nolint:errorlint // what a brief returns is not wrapped
	if !ok {
		return "", false
	}
	return input.Sentence, true
}
