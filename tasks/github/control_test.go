package github

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// ours are the comments that we have written, without their marks.
func (w *world) ours(n int) (all []string) {
	me := must(w.src.forge.Login(w.Context()))
	for _, c := range w.hub.Comments(repo, n) {
		if _, text, ok := strings.Cut(c.Body, "-->\n"); ok && thread.IsMarked(c.Body) && c.User == me {
			all = append(all, text)
		}
	}
	return all
}

// wantOurs waits until we have written as many comments.
func (w *world) wantOurs(n int, want ...string) {
	w.Helper()
	w.wait(func() bool { return len(w.ours(n)) >= len(want) })
	if diff := cmp.Diff(want, w.ours(n)); diff != "" {
		w.Errorf("comments (-want +got):\n%s", diff)
	}
}

// states are the states of all tasks, by ID.
func (f front) states(tasks ...tasks.Task) (all []string) {
	f.Helper()
	for _, t := range tasks {
		all = append(all, must(f.desk.Status(f.Context(), t.ID)).State)
	}
	return all
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.talkers()
	n := w.quietOpen()
	f := w.listen()
	o := thread.Ref{Repo: repo, Number: n}
	w.signs(n, f.comment(n, "ann", "/pause"), "eyes", "hooray")
	if p := must(w.src.memory.State(w.Context(), o)); !p.Paused || p.PausedBy != "ann" {
		w.Errorf("%+v", p)
	}
	w.signs(n, f.comment(n, "cleo", "/resume"), "confused")
	if p := must(w.src.memory.State(w.Context(), o)); !p.Paused {
		w.Error("a reader has resumed it")
	}
	if err := w.src.memory.ChangeState(w.Context(), o, func(p *subject.State) error {
		p.Reviews, p.Rounds = 5, 5
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	w.signs(n, f.comment(n, "ann", "/resume"), "eyes", "hooray")
	if p := must(w.src.memory.State(w.Context(), o)); p.Paused || p.PausedBy != "" || p.Reviews != 0 ||
		p.Rounds != 0 {
		w.Errorf("%+v", p)
	}
	if all := f.tasks(); len(all) > 0 {
		w.Errorf("tasks: %+v", all)
	}
}

// A pause that GitHub delivers late or twice should not pause again, and is in the audit log once.
func TestLatePause(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	n := w.quietOpen()
	f := w.listen()
	f.comment(n, "ann", "/pause")
	d, _ := w.hub.LastDelivery("issue_comment")
	f.comment(n, "ann", "/resume")
	if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
		t.Fatal(err)
	}
	if p := must(w.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: n})); p.Paused {
		t.Errorf("%+v", p)
	}
	f.audited("github/ann () pause acme/api#1: 200", "github/ann () resume acme/api#1: 200")
}

// /cancel stops the conversation and the analyses, but not what was asked for later; GitHub may deliver late.
func TestCancelCommand(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	n := w.quietOpen()
	f := w.listen()
	w.signs(n, f.comment(n, "ann", "/cancel"), "eyes", "confused")
	w.wantOurs(n, intake.NothingRuns)
	f.comment(n, "ann", "@errand why?")
	f.comment(n, "ann", "/review")
	all := f.tasks()
	w.signs(n, f.comment(n, "ann", "/cancel"), "eyes", "hooray")
	if diff := cmp.Diff([]string{"ended", "ended"}, f.states(all...)); diff != "" {
		t.Error(diff)
	}
	if e := must(f.desk.Status(t.Context(), all[0].ID)).Ending; e.Kind != tasks.Cancelled || e.By != "ann" {
		t.Errorf("%+v", e)
	}
	d, _ := w.hub.LastDelivery("issue_comment")
	f.comment(n, "ann", "@errand and now?")
	if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
		t.Fatal(err)
	}
	if got := f.tasks(); len(got) != 1 || f.states(got...)[0] != "waiting" {
		t.Errorf("%+v", got)
	}
}

func TestRetryCommand(t *testing.T) {
	t.Parallel()
	clock := githubfake.NewClock(time.Unix(1_790_000_000, 0), time.Second)
	w := newWorld(t, githubfake.Config{Now: clock.Now}, []func(*config){func(c *config) { c.Hub.Token = "ghp_test" }})
	w.talkers()
	n := w.quietOpen()
	f := w.listen()
	f.comment(n, "ann", "/retry")
	w.wantOurs(n, neverFailed)
	f.comment(n, "ann", "@errand why?")
	task := f.only()
	f.comment(n, "ann", "/retry")
	w.wantOurs(n, neverFailed, intake.StillRunning)
	f.cancel(task.ID)
	clock.Set(time.Now().Add(time.Minute)) // the task has ended by our own clock
	w.signs(n, f.comment(n, "cleo", "/retry"), "confused")
	w.wantOurs(n, neverFailed, intake.StillRunning, noWork)
	w.signs(n, f.comment(n, "ann", "/retry"), "eyes", "hooray")
	if diff := cmp.Diff([]string{"waiting"}, f.states(task)); diff != "" {
		t.Error(diff)
	}
}

// Help, what is no command, and who may not ask: one short answer each, on whatever surface, however often GitHub
// delivers.
func TestShortAnswers(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.talkers()
	n := w.quietOpen()
	f := w.listen()
	w.signs(n, f.comment(n, "ann", "/help"), "eyes", "hooray")
	w.wantOurs(n, help(remarkEvent{}))
	first := w.hub.Deliveries("issue_comment")[0].GUID
	w.signs(n, f.comment(n, "ann", "@errand /merge"), "confused")
	w.wantOurs(n, help(remarkEvent{}), unknownCommand)
	if err := w.hub.Redeliver(w.Context(), first); err != nil {
		w.Fatal(err)
	}
	for range 3 {
		w.signs(n, f.comment(n, "cleo", "/help"), "confused")
	}
	w.wait(func() bool { return len(w.ours(n)) >= 3 })
	w.wantOurs(n, help(remarkEvent{}), unknownCommand, noWork)
	must(w.hub.Review(w.Context(), repo, n, "ann", "COMMENT", "",
		githubfake.Line{Path: "change.go", Line: 1, Body: "/help"}))
	w.wait(func() bool { return len(w.hub.ReviewComments(repo, n)) == 2 })
	if c := w.hub.ReviewComments(repo, n); c[1].InReplyTo != c[0].ID ||
		!strings.HasSuffix(c[1].Body, "-->\n"+help(remarkEvent{})) {
		w.Errorf("%+v", c)
	}
}

// A command without arguments does nothing with words behind it. Its author gets a sign, and the reason if they have
// mentioned errand: other bots may have that command with words.
func TestWordsBehindControls(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	f := w.listen()
	f.comment(n, "ann", "@errand why?")
	task := f.only()
	var want []string
	for body, word := range map[string]string{
		"/cancel the subscription": "", "/pause\u00a0please": "", "/approve no-issue": "",
		"@errand /approve the release": cmdApprove, "@errand /approve always yes": cmdAlways,
	} {
		if word != "" {
			want = append(want, standsAlone(word))
		}
		w.signs(n, f.comment(n, "ann", body), "confused")
		w.wantOurs(n, want...)
		d, _ := w.hub.LastDelivery("issue_comment")
		if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"waiting"}, f.states(task)); diff != "" {
		t.Error(diff)
	}
	w.signs(n, f.comment(n, "ann", "\u00a0/cancel\u00a0"), "eyes", "hooray")
	f.comment(n, "ann", "/lgtm now") // another bot's
	w.wantOurs(n, want...)
}

// Who mistypes a command and may write hears it. What is no typo may be the command of another bot.
func TestTypos(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	f := w.listen()
	var silent []int64
	for _, body := range []string{"/reviews", "/lgtm", "/approve-all", "/hold", "/retest", "    /revie", "`/revie`", "/"} {
		by := "ann"
		if body == "/reviews" {
			by = "cleo" // may not write
		}
		silent = append(silent, f.comment(n, by, body))
	}
	var want []string
	for body, command := range map[string]string{
		"/revie": cmdReview, "/reviews": cmdReview, "/rewiew the tests": cmdReview, "/Fix": cmdFix, "/fix_ci\n": cmdFixCI,
		"/paus\nnow": cmdPause, "/puase": cmdPause,
	} {
		want = append(want, "Unknown command. Did you mean `"+command+"`? Comment `/help` for the list.")
		w.signs(n, f.comment(n, "ann", body), "confused")
		w.wantOurs(n, want...)
		d, _ := w.hub.LastDelivery("issue_comment")
		if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
			t.Fatal(err)
		}
		w.wantOurs(n, want...)
	}
	for _, id := range silent {
		w.signs(n, id)
	}
	if all := f.tasks(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// A control that could not run has to come again.
func TestControlsFail(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	w.listen()
	w.hub.Fail("GET /repos/{o}/{r}/collaborators/{u}/permission", githubfake.Failure{Status: 502})
	if _, err := w.hub.Comment(t.Context(), repo, n, "ann", "/pause"); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprint(http.StatusServiceUnavailable)) {
		t.Errorf("got %v", err)
	}
}
