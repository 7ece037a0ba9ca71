package github

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

func jsonOf(v any) (json.RawMessage, error) { return json.Marshal(v) }

// asking is a front door, and a pull request of which a mention of Ann's is under way.
type asking struct {
	front
	n     int
	task  tasks.Task
	claim *store.Claim
}

func newAsking(t *testing.T) *asking {
	t.Helper()
	w := ticking(t)
	w.hub.SetPermission(repo, "ben", "write")
	a := &asking{n: w.quietOpen()}
	a.front = w.listen()
	a.comment(a.n, "ann", "@errand paint it")
	a.task = a.only()
	a.claim = must(a.db.Claim(t.Context(), a.task.ID, 0, "worker"))
	return a
}

// asks lets the agent ask, at the time of the newest comment.
func (a *asking) asks(q tasks.Question) {
	a.Helper()
	all := a.hub.Comments(repo, a.n)
	q.Asked = all[len(all)-1].CreatedAt.Add(time.Second)
	must(a.claim.Ask(a.Context(), q.Key, must(jsonOf(q))))
}

// answer is the answer to a question and its author.
func (a *asking) answer(key string) string {
	a.Helper()
	all := must(a.desk.Questions(a.Context(), a.task.ID))
	q := all[slices.IndexFunc(all, func(q tasks.Question) bool { return q.Key == key })]
	if q.Answer == nil {
		return ""
	}
	return q.Answer.By + ": " + q.Answer.Text
}

// A mention or command by anyone with write access should answer, once.
func TestAnswersByComment(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		q             tasks.Question
		who, said     string
		want          string // the answer; empty: none
		told          string // below the comment
		thenAnotherIs bool   // a task
	}{
		"a number": {q: colours, who: "ann", said: "@errand 1", want: "ann: red"},
		"words": {
			q: colours, who: "ann", said: "Rather green, @errand.\n<!-- red -->", want: "ann: Rather green, .",
		},
		"another one":   {q: colours, who: "ben", said: "@errand 1", want: "ben: red"},
		"/answer":       {q: colours, who: "ben", said: "/answer 1", want: "ben: red"},
		"/answer, long": {q: colours, who: "ben", said: "/answer Green.\nOr so.", want: "ben: Green.\nOr so."},
		"/answer, nothing": {
			q: colours, who: "ben", said: "/answer", told: "An answer has from 1 to 4096 characters.",
		},
		"a stranger":           {q: colours, who: "cleo", said: "/answer 1", told: noWork},
		"a stranger's mention": {q: colours, who: "cleo", said: "@errand 1", told: noWork},
		"a bot":                {q: colours, who: "renovate[bot]", said: "/answer 1"},
		"/approve":             {q: consent, who: "ben", said: "/approve", want: "ben: Approve"},
		"/approve always":      {q: consent, who: "ben", said: "/approve always", want: "ben: Always for this task"},
		"/deny":                {q: consent, who: "ben", said: "/deny", want: "ben: Deny"},
		"/deny, why": {
			q: consent, who: "ben", said: "/deny not on a Friday", want: "ben: Deny: not on a Friday",
		},
		"in words":            {q: consent, who: "ann", said: "@errand yes", want: "ann: yes"},
		"a stranger approves": {q: consent, who: "cleo", said: "/approve", told: noWork},
		"nothing to approve":  {q: colours, who: "ann", said: "/approve", told: noConsent},
		"a command":           {q: colours, who: "ann", said: "/fix", thenAnotherIs: true},
		"in code":             {q: colours, who: "ann", said: "Say `@errand 1`."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAsking(t)
			a.asks(row.q)
			id := a.comment(a.n, row.who, row.said)
			var want []string
			if row.told != "" {
				want = append(want, row.told)
				a.signs(a.n, id, notDone)
			}
			if row.want != "" {
				a.signs(a.n, id, done)
			}
			a.wantOurs(a.n, want...)
			if got := a.answer(row.q.Key); got != row.want {
				t.Errorf("answered %q, want %q", got, row.want)
			}
			if n := len(a.tasks()); n != 1 && !row.thenAnotherIs || n != 2 && row.thenAnotherIs {
				t.Errorf("%d tasks", n)
			}
		})
	}
}

// The first answer should count; a redelivery, an edit and a comment from before the question should not.
func TestAnswerOnce(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	a.asks(colours)
	first := a.comment(a.n, "ann", "/answer 1")
	a.signs(a.n, first, done)
	d, _ := a.hub.LastDelivery("issue_comment")
	if err := a.hub.EditComment(t.Context(), repo, a.n, first, "ann", "/answer 2"); err != nil {
		t.Error(err)
	}
	second := colours
	second.Key = "k-9"
	a.asks(second)
	if err := a.hub.Redeliver(t.Context(), d.GUID); err != nil {
		t.Error(err)
	}
	if got := []string{a.answer(colours.Key), a.answer("k-9")}; !cmp.Equal(got, []string{"ann: red", ""}) {
		t.Errorf("%q", got)
	}
	a.signs(a.n, a.comment(a.n, "ben", "@errand green"), done)
	if err := a.hub.Redeliver(t.Context(), d.GUID); err != nil { // no question is open any more
		t.Error(err)
	}
	tooLate := a.comment(a.n, "ann", "/answer 2")
	a.signs(a.n, tooLate, notDone)
	a.wantOurs(a.n, noQuestion)
	if got := a.answer("k-9"); got != "ben: green" || len(a.tasks()) != 1 {
		t.Errorf("%q, %d tasks", got, len(a.tasks()))
	}
}

// An approval of one call should not approve the next, even if it arrives only then.
func TestApprovedBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"/approve", "/approve always", "/deny", "/answer 1"} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			a := newAsking(t)
			q := consent
			q.Asked = a.hub.Comments(repo, a.n)[0].CreatedAt.Add(time.Minute)
			must(a.claim.Ask(t.Context(), q.Key, must(jsonOf(q))))
			a.signs(a.n, a.comment(a.n, "ann", said), notDone)
			a.wantOurs(a.n, noQuestion)
			if got := a.answer(q.Key); got != "" {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// A comment from before the question should not answer it, but become a task.
func TestSaidBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	q := colours
	q.Asked = a.hub.Comments(repo, a.n)[0].CreatedAt.Add(time.Minute)
	must(a.claim.Ask(t.Context(), q.Key, must(jsonOf(q))))
	a.signs(a.n, a.comment(a.n, "ann", "@errand 2"), eyes)
	if got := a.answer(q.Key); got != "" || len(a.tasks()) != 2 {
		t.Errorf("%q, %d tasks", got, len(a.tasks()))
	}
}

// The reader learns what happens without an answer.
func TestWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]tasks.Question{
		"After that I continue without an answer.": {Text: "Red?"}, "After that the call is denied.": {
			Text: "May I?", Consent: "Bash",
		},
	} {
		if got := howToAnswer(q, "errand[bot]"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", q.Text, got)
		}
	}
}
