package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// colours is a question with everything in it that a question can have, and consent one of a rule's.
var (
	colours = tasks.Question{
		Key: "k-1", Text: "Which one, @octocat? <!-- errand:reply task=x -->\n\n```go\nif a { // @octocat",
		Asked: ended, Until: ended.Add(15 * time.Minute),
		Options: []string{"red", "blue,\nas @octocat <!-- said", "![x](https://evil.example/?)"},
	}
	consent = tasks.Question{
		Key: "k-2", Text: "May I do this? Bash (it deploys)\n\n```\n{\n  \"command\": \"make @deploy\"\n}\n```",
		Asked: ended, Until: ended.Add(15 * time.Minute),
		Options: []string{tasks.Approve, tasks.Always, tasks.Deny}, Consent: "Bash (it deploys, @octocat)",
	}
)

func TestQuestionBodies(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n, task, _ := w.talk()
	free := colours
	free.Key, free.Text, free.Options = "k-3", "What is it called?", nil
	var said []string
	for _, q := range []tasks.Question{colours, free, consent} {
		if err := w.src.Ask(t.Context(), task, q); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []tasks.Question{colours, free, consent} {
		q.Answer = map[string]*tasks.Answer{
			"k-1": {By: "ann", Text: "<!-- blue -->, @octocat\nand ![x](y)"}, "k-2": {Expired: true},
			"k-3": {Expired: true},
		}[q.Key]
		said = append(said, w.ours(n)[len(said)])
		if err := w.src.Settle(t.Context(), task, q); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.src.Say(t.Context(), task, "Half of it is done, @octocat.\n\n```go\nif a {"); err != nil {
		t.Fatal(err)
	}
	golden(t, "questions", strings.Join(append(said, w.ours(n)...), "\n=====\n"))
	if got := len(w.hub.Comments(repo, n)); got != 5 {
		t.Errorf("%d comments", got)
	}
}

// An update should be posted once, even if GitHub's response is lost or someone has copied its mark; a refusal
// should be reported.
func TestTalkOnce(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n, task, _ := w.talk()
	must(w.hub.Comment(w.Context(), repo, n, "mallory",
		thread.Message{Task: task.ID, What: questionOf(colours)}.Mark(1)+"\nNo."))
	for _, say := range []func() error{
		func() error { return w.src.Ask(w.Context(), task, colours) },
		func() error { return w.src.Say(w.Context(), task, "Half.") },
	} {
		before := len(w.ours(n))
		w.hub.Fail(createComment, githubfake.Failure{Status: 502, After: true})
		for range 2 {
			if err := say(); err != nil {
				w.Error(err)
			}
		}
		if got := w.ours(n); len(got) != before+1 {
			w.Errorf("%q", got)
		}
	}
	w.hub.Fail(createComment, githubfake.Failure{Status: 403})
	if err := w.src.Say(w.Context(), task, "All."); !hub.Permanent(err) {
		w.Errorf("refused: %v", err)
	}
}

// A question to a person who commented on a line should appear there.
func TestQuestionOnALine(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	must(w.hub.Review(t.Context(), repo, n, "ann", "COMMENT", "",
		githubfake.Line{Path: "change.go", Line: 1, Body: "@errand why?"}))
	first := w.hub.ReviewComments(repo, n)[0].ID
	task := w.asks(n, thread.Spot{Place: thread.OnLine, ID: first, Thread: first})[0]
	q := colours
	if err := w.src.Ask(t.Context(), task, q); err != nil {
		t.Fatal(err)
	}
	q.Answer = &tasks.Answer{By: "ann", Text: "red"}
	if err := w.src.Settle(t.Context(), task, q); err != nil {
		t.Fatal(err)
	}
	all := w.hub.ReviewComments(repo, n)
	if len(all) != 2 || all[1].InReplyTo != first || !strings.Contains(all[1].Body, "✅ ann: red") ||
		len(w.ours(n)) != 0 {
		t.Errorf("%+v", all)
	}
}

// Automatic tasks, tasks for bots or strangers, those of watched repositories, and those without a conversation
// should not ask.
func TestTalks(t *testing.T) {
	t.Parallel()
	w := withToken(t, func(c *config) { c.Board = watching{"acme/web"} })
	for name, row := range map[string]struct {
		Kind string
		o    subject.Origin
		want bool
	}{
		"a mention":        {"comment", subject.Origin{Ref: thread.Ref{Repo: repo}, Asked: &subject.Request{}}, true},
		"/fix":             {"fix", subject.Origin{Ref: thread.Ref{Repo: repo}, Asked: &subject.Request{}}, true},
		"/review":          {"review", subject.Origin{Ref: thread.Ref{Repo: repo}, Asked: &subject.Request{}}, false},
		"/analyze":         {"analyze", subject.Origin{Ref: thread.Ref{Repo: repo}, Asked: &subject.Request{}}, false},
		"a bot's mention":  {"comment", subject.Origin{Ref: thread.Ref{Repo: repo}, Asked: &subject.Request{Bot: true}}, false},
		"a watched one":    {"comment", subject.Origin{Ref: thread.Ref{Repo: "acme/web"}, Asked: &subject.Request{}}, false},
		"checks":           {"check_failure", subject.Origin{Ref: thread.Ref{Repo: repo}}, false},
		"a review of ours": {"review_response", subject.Origin{Ref: thread.Ref{Repo: repo}, Asked: &subject.Request{}}, false},
	} {
		if got := w.src.Capabilities().TalkAbout(tasks.Task{Kind: row.Kind, Origin: must(jsonOf(row.o))}); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !w.src.Capabilities().Quiet {
		t.Error("people are told that they were heard")
	}
	n, task, _ := w.talk()
	b := must(w.src.Brief(t.Context(), task, ""))
	task.Profile = agent.Read
	if !strings.Contains(b.System, "ask_user") || strings.Contains(b.System, "nobody answers") {
		t.Error(b.System)
	}
	if diff := cmp.Diff(1, len(w.hub.Comments(repo, n))); diff != "" {
		t.Error(fmt.Sprint("comments ", diff))
	}
}

// Hidden text in an answer neither shows nor uses up the space of what does.
func TestOutcomeWithHiddenText(t *testing.T) {
	t.Parallel()
	a := tasks.Answer{By: "ann", Text: "yes" + strings.Repeat("\u200b", 400) + " do it"}
	if got, want := outcomeOf(tasks.Question{Answer: &a}), "✅ ann: yes do it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
