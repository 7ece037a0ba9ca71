package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/autofix"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// watching is a board of some repositories that never gets a notice.
type watching []string

func (w watching) Watches(repo string) bool                 { return slices.Contains(w, repo) }
func (w watching) Tell(context.Context, tasks.Notice) error { return nil }

// pinboard is a board of all repositories that records its notices.
type pinboard struct {
	mu   sync.Mutex
	list []tasks.Notice
	fail error // of the next notice, which is recorded anyway
}

func (b *pinboard) Watches(string) bool { return true }

func (b *pinboard) Tell(_ context.Context, n tasks.Notice) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, n)
	err := b.fail
	b.fail = nil
	return err
}

// told lists the headlines and marks the silent ones.
func (b *pinboard) told() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.list {
		said := n.Headline
		if n.Quiet {
			said += " (quiet)"
		}
		all = append(all, said)
	}
	return all
}

// written lists what we have asked GitHub to change.
func (w *world) written() (all []string) {
	for _, c := range w.hub.Calls("") {
		if c.Method != http.MethodGet && !strings.HasSuffix(c.Path, "/access_tokens") &&
			!strings.Contains(string(c.Body), `"query":"query(`) {
			all = append(all, c.Method+" "+c.Path)
		}
	}
	return all
}

func (w *world) want(b *pinboard, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, b.told()); diff != "" {
		w.Errorf("told (-want +got):\n%s", diff)
	}
	if got := w.written(); len(got) != 0 {
		w.Errorf("written to GitHub: %q", got)
	}
}

// Reviews of a watched repository should be posted in full on the board, earlier findings only in short, and
// automatic ones that has not come to anything not at all.
func TestReviewsOnTheBoard(t *testing.T) {
	t.Parallel()
	b := &pinboard{}
	w := newApp(t, githubfake.Config{}, func(c *config) { c.Board = b })
	n := w.openCode("ten")
	head := func() string { return hub.ShortSHA(w.pull(n).HeadSHA) }
	close := func(i int, e tasks.Ending) {
		t.Helper()
		e.At = ended.Add(time.Duration(i) * time.Minute)
		w.close(w.task(n, i), e)
	}
	close(0, reviewed("Two.", flaw("odd", 3), flaw("broken", 40)))
	first := w.pull(n).HeadSHA
	golden(t, "board.findings",
		strings.NewReplacer(first, "<head>", head(), "<short>", w.hub.URL(), "https://github.example").Replace(b.list[0].Headline+"\n\n"+b.list[0].Body))
	if p := b.list[0].PullRequest; p.Repo != repo || p.Number != n || p.Title != "Add ten lines" ||
		p.URL == "" || p.Fork {
		t.Errorf("%+v", p)
	}
	want := []string{"Review of " + head() + ": 2 new findings"}
	w.want(b, want...)

	must(w.hub.PushPR(t.Context(), repo, n, map[string]string{"more.txt": "more\n"}))
	close(1, reviewed("Again.", flaw("odd", 3)))
	want = append(want, "Review of "+head()+": nothing new, 2 still open (quiet)")
	for i, kind := range []tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Cancelled, tasks.Withdrawn} {
		close(2+i, tasks.Ending{Kind: kind, Reason: "No."})
	}
	close(6, tasks.Ending{Kind: tasks.Failed, Reason: "The model is overloaded."})
	want = append(want, "No review of "+head()+": The model is overloaded.")
	close(7, answered("In words."))
	want = append(want, "Review of "+head())
	w.want(b, want...)

	// Overtaken by a push it says nothing, unless it was noted before that it has.
	late, e := w.task(n, 8), reviewed("Late.", flaw("late", 9))
	b.fail = errors.New("away")
	if w.report(late).Close(t.Context(), e) == nil {
		t.Error("closed although nobody knows whether it was told")
	}
	want = append(want, "Review of "+head()+": 1 new finding, 2 still open")
	overtaken := w.task(n, 9)
	was := head()
	must(w.hub.PushPR(t.Context(), repo, n, map[string]string{"most.txt": "most\n"}))
	w.close(late, e)
	w.close(overtaken, reviewed("Overtaken.", flaw("overtaken", 8)))
	want = append(want, "Review of "+was+": 1 new finding, 2 still open")
	w.want(b, want...)
	l := must(w.ledger(n).Load(t.Context()))
	if slices.ContainsFunc(l.Known, func(k findings.Known) bool { return strings.Contains(k.Claim, "overtaken") }) {
		t.Error("what nobody was told counts as told")
	}
}

// Requests on GitHub should be answered on the board with every ending; people without access should get no answer
// anywhere.
func TestAnswersOnTheBoard(t *testing.T) {
	t.Parallel()
	b := &pinboard{}
	w := withToken(t, func(c *config) { c.Board = b })
	n, task, _ := w.talk()
	for _, e := range []tasks.Ending{
		answered("Because."),
		{Kind: tasks.Cancelled, By: "ann"},
		{Kind: tasks.Refused, Reason: "It is closed."},
		{Kind: tasks.Withdrawn},
	} {
		w.close(task, e)
	}
	if got := b.list[0]; got.Body != "Because." || got.PullRequest.URL != must(subject.Of(task)).Asked.URL {
		t.Errorf("%+v", got)
	}
	review := task
	review.Kind = "review"
	w.close(review, tasks.Ending{Kind: tasks.Refused, Reason: "It is closed."})
	stranger := task
	stranger.Actor = "cleo"
	w.close(stranger, tasks.Ending{Kind: tasks.Refused, Reason: "cleo has no write access to acme/api."})
	// A read-only token cannot look up permissions.
	unknown := task
	unknown.Actor = "dan"
	w.hub.Fail(collaborator, githubfake.Failure{Status: 403})
	w.close(unknown, tasks.Ending{Kind: tasks.Refused, Reason: "GitHub did not say."})
	head := hub.ShortSHA(must(subject.Of(task)).Head)
	w.want(b, "Answer to ann", "Answer to ann: Stopped by ann. Ask again to continue.", "Answer to ann: It is closed.",
		"No review of "+head+": It is closed.")
	brief := must(w.src.Brief(t.Context(), task, ""))
	if !strings.Contains(brief.System, watchedSystem) || strings.Contains(brief.System, "ask_user") {
		t.Error(brief.System)
	}
	if n != 1 {
		t.Error(n)
	}
}

// Events of a repository that is only watched start reviews and what people ask for, with no sign of it, and nothing
// that would have to write.
func TestEventsOfAWatchedRepository(t *testing.T) {
	t.Parallel()
	b := &pinboard{}
	w := ticking(t)
	w.src = w.source(func(c *config) { c.Hub.Token, c.Board = "ghp_test", b })
	f := w.listen()
	n := w.open()
	for _, said := range []string{"@errand why?", "/help", "/pause", "/resume", "/nothing @errand", "/answer 1"} {
		f.comment(n, "ann", said)
	}
	f.comment(n, "cleo", "/cancel")
	me := must(w.src.forge.Login(t.Context()))
	own := must(w.hub.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Head: "errand/x", User: me, Files: map[string]string{"x.go": "package x\n"},
	}))
	must(w.hub.Review(t.Context(), repo, own, "ann", "REQUEST_CHANGES", "Mend it."))
	failed := autofix.Check{
		Ref: thread.Ref{Repo: repo}, Name: "ci", Conclusion: "failure", Head: mustPull(w, own).GetHead().GetSHA(),
		Branches: []string{"errand/x"},
	}
	if _, err := w.src.fixes.Failed(t.Context(), f.desk, failed); !isIgnored(err) {
		t.Errorf("mended: %v", err)
	}
	var kinds []string
	for _, task := range f.tasks() {
		kinds = append(kinds, task.Kind)
	}
	slices.Sort(kinds)
	if diff := cmp.Diff([]string{"comment", "review"}, kinds); diff != "" {
		t.Error(diff)
	}
	if _, err := w.src.forge.Publish(t.Context(), forge.Proposal{Repo: repo, Branch: "errand/x"}); err == nil ||
		err.Error() != subject.OnlyWatched {
		t.Errorf("proposed: %v", err)
	}
	w.want(b)
}

// The token for git lets nothing be pushed there.
func TestCredentialOfAWatchedRepository(t *testing.T) {
	t.Parallel()
	w := newApp(t, githubfake.Config{}, func(c *config) { c.Board = watching{repo} })
	if _, _, err := w.src.forge.Credential(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	calls := w.hub.Calls("POST /app/installations/{id}/access_tokens")
	var ask struct {
		Permissions map[string]string `json:"permissions"`
	}
	if err := json.Unmarshal(calls[len(calls)-1].Body, &ask); err != nil ||
		fmt.Sprint(ask.Permissions) != "map[contents:read]" {
		t.Errorf("%v, %v", ask, err)
	}
}

func mustPull(w *world, n int) *github.PullRequest {
	_, pr, err := w.src.api.ReachPull(w.Context(), thread.Ref{Repo: repo, Number: n})
	if err != nil {
		w.Fatal(err)
	}
	return pr
}

func isIgnored(err error) bool {
	_, ok := errors.AsType[subject.Ignored](err)
	return ok
}

// The notice should say that a pull request is from a fork, because requests below it are also a stranger's.
func TestForkOnTheBoard(t *testing.T) {
	t.Parallel()
	b := &pinboard{}
	w := withToken(t, func(c *config) { c.Board = b })
	task := w.task(w.open(), 0)
	task.Profile = agent.Untrusted
	w.close(task, reviewed("Fine."))
	if len(b.list) != 1 || !b.list[0].PullRequest.Fork {
		t.Errorf("%+v", b.list)
	}
}
