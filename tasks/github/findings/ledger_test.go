package findings

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at is a finding in main.go.
func at(line int, s Severity, claim string) Finding {
	return Finding{
		ID: "f", Severity: s, Confidence: High, Path: "main.go", Line: line, Side: Right, Claim: claim,
		Evidence: "seen",
	}
}

// reviewed is a ledger after one review of commit h1, and the IDs of its findings.
func reviewed(found ...Finding) (*Ledger, []string) {
	l := &Ledger{}
	ids := review(l, "h1", Answer{Findings: found})
	return l, ids
}

// review settles and tells, and returns the IDs of what is new.
func review(l *Ledger, head string, a Answer) (ids []string) {
	p := l.Settle(Input{Task: "task-" + head, Head: head, Answer: a})
	l.Told("task-"+head, p)
	for _, f := range p.Inline {
		ids = append(ids, f.ID)
	}
	return ids
}

const (
	closes  = "The error of Close is swallowed in Save"
	closes2 = "Save swallows the error that Close returns"
	closes3 = "The error of Close is lost in Save"
	races   = "Two goroutines write to counters without a lock"
)

// A finding that is repeated in other words should not be new.
func TestSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, found Finding
		same         bool
	}{
		"word for word":         {at(10, Major, closes), at(10, Major, closes), true},
		"moved, word for word":  {at(10, Major, closes), at(90, Major, closes), true},
		"in other words":        {at(10, Major, closes), at(11, Minor, closes2), true},
		"in other words, moved": {at(10, Major, closes), at(90, Major, closes3), false},
		"of a file as a whole":  {at(0, Major, closes), at(90, Major, closes3), true},
		"of a file, at its top": {at(0, Major, closes), at(2, Major, "Close fails and Save hides the error"), false},
		"something else there":  {at(10, Major, closes), at(10, Major, races), false},
		"same sentence, else": {
			at(10, Major, closes), at(90, Major, "The error of Close is swallowed in Load"), false,
		},
		"in another file": {at(10, Major, closes), Finding{
			ID: "f", Path: "x.go", Line: 10, Severity: Major, Claim: closes,
		}, false},
		"a range that has grown": {at(10, Major, closes), Finding{
			ID: "f", Path: "main.go", StartLine: 8, Line: 40, Severity: Major, Claim: closes2,
		}, true},
		"on the side that is gone": {at(10, Major, closes), Finding{
			ID: "f", Path: "main.go", Side: Left, Line: 10, Severity: Major, Claim: closes3,
		}, false},
	} {
		l, _ := reviewed(c.known)
		if got := len(review(l, "h2", Answer{Findings: []Finding{c.found}})) == 0; got != c.same {
			t.Errorf("%s: same %v", name, got)
		}
	}
	l, ids := reviewed(at(10, Major, closes))
	named := at(70, Major, races)
	named.ID = ids[0]
	if again := review(l, "h2", Answer{Findings: []Finding{named}}); len(again) != 0 {
		t.Error("named by its ID it is new:", again)
	}
}

// The same mistake at a second place is a second finding.
func TestSameMistakeElsewhere(t *testing.T) {
	t.Parallel()
	l, _ := reviewed(at(10, Major, closes))
	if ids := review(l, "h2", Answer{Findings: []Finding{
		at(11, Major, closes), at(90, Major, closes),
	}}); len(ids) != 1 {
		t.Error("new:", ids)
	}
	l, ids := reviewed(at(10, Major, closes), at(11, Major, closes2), at(90, Major, closes))
	if len(ids) != 2 || ids[0] == ids[1] {
		t.Error("of one answer:", ids)
	}
	if len(l.Known) != 2 {
		t.Error("known:", l.Known)
	}
}

// The fate of a finding in the next review.
func TestRecheck(t *testing.T) {
	t.Parallel()
	type want struct{ inline, fixed, gone, open int }
	thread := func(change func(*Thread)) func(*Ledger, string) {
		return func(l *Ledger, id string) {
			th := Thread{ID: "T1", Comment: 5, Finding: id, Path: "main.go", Line: 12}
			change(&th)
			l.Observe([]Thread{th})
		}
	}
	said := func(s Status) func(string) Answer {
		return func(id string) Answer { return Answer{Earlier: []Checked{{ID: id, Status: s}}} }
	}
	again := func(s Status) func(string) Answer {
		return func(id string) Answer {
			return Answer{Findings: []Finding{at(12, Critical, closes2)}, Earlier: []Checked{{ID: id, Status: s}}}
		}
	}
	nothing := func(*Ledger, string) {}
	resolved := thread(func(th *Thread) { th.Resolved, th.DismissedBy = true, "ben" })
	answered := thread(func(th *Thread) { th.Answered = true })
	for name, c := range map[string]struct {
		meanwhile func(*Ledger, string)
		answer    func(string) Answer
		want      want
		status    Status
	}{
		"not mentioned":                    {nothing, func(string) Answer { return Answer{} }, want{open: 1}, Open},
		"open":                             {nothing, said(Open), want{open: 1}, Open},
		"mended":                           {nothing, said(Fixed), want{fixed: 1}, Fixed},
		"gone":                             {nothing, said(Outdated), want{gone: 1}, Outdated},
		"found again":                      {nothing, again(Open), want{open: 1}, Open},
		"found again, said to be mended":   {nothing, again(Fixed), want{open: 1}, Open},
		"a status that is not the agent's": {nothing, said(Dismissed), want{open: 1}, Open},
		"resolved by a person":             {resolved, again(Open), want{}, Dismissed},
		"resolved without write access": {
			thread(func(th *Thread) { th.Resolved = true }), again(Open), want{open: 1}, Open,
		},
		"resolved and mended":  {resolved, said(Fixed), want{}, Dismissed},
		"answered by a person": {answered, again(Open), want{}, Open},
		"answered and mended":  {answered, said(Fixed), want{fixed: 1}, Fixed},
		"resolved by us, found again": {
			thread(func(th *Thread) { th.Resolved, th.Ours = true, true }), again(Open), want{inline: 1}, Fixed,
		},
	} {
		l, ids := reviewed(at(10, Major, closes))
		c.meanwhile(l, ids[0])
		p := l.Settle(Input{Task: "t2", Head: "h2", Answer: c.answer(ids[0])})
		got := want{len(p.Inline), len(p.Fixed), len(p.Gone), len(p.StillOpen)}
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		l.Told("t2", p)
		if k := l.Known[0]; k.Status != c.status || k.Severity != Major {
			t.Errorf("%s: now %+v", name, k)
		}
		if len(p.Inline) > 0 && p.Inline[0].ID == ids[0] {
			t.Errorf("%s: the new one has the old one's ID", name)
		}
	}
}

// Findings that were settled but not posted should leave no trace: the next review finds them again.
func TestOnlyWhatWasToldIsKnown(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(at(10, Major, closes))
	l.Settle(Input{Task: "t2", Head: "h2", Answer: Answer{
		Findings: []Finding{at(50, Major, races)}, Earlier: []Checked{{ID: ids[0], Status: Fixed}},
	}})
	if l.Reviewed != "h1" || len(l.Known) != 1 || l.Known[0].Status != Open {
		t.Errorf("settled only: %+v", l)
	}
	p := l.Settle(Input{Task: "t3", Head: "h3", Answer: Answer{Findings: []Finding{
		at(50, Major, races), at(70, Minor, "x is y"),
	}}})
	if len(p.Inline) != 1 {
		t.Errorf("next: %+v", p)
	}
	p.Inline, p.Below = nil, 1 // below the repository's floor, say
	l.Told("t3", p)
	if l.Reviewed != "h3" || len(l.Known) != 1 {
		t.Errorf("told: %+v", l)
	}
	if posted, told, _ := l.Plan("t3"); !told || len(posted.Inline) > 0 || posted.Below != 1 {
		t.Errorf("posted: %+v", posted)
	}
	if _, told, settled := l.Plan("t2"); told || !settled {
		t.Error("the review before counts as posted")
	}
	if !l.Waits("h3") || l.Waits("h1") {
		t.Error("the last review has an open finding, and only it")
	}
	if l.Count(l.Outcomes(true)); l.Waits("h3") {
		t.Error("a merged pull request has findings that wait")
	}
}

// A report may be closed several times, by several processes, and says the same each time.
func TestSettleIsOnce(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(at(10, Major, closes))
	in := Input{Task: "t2", Head: "h2", Answer: Answer{Findings: []Finding{at(50, Major, races)}}}
	first := l.Settle(in)
	for range 2 {
		l = stored(t, l)
		l.Observe([]Thread{
			{ID: "T1", Finding: ids[0], Resolved: true, DismissedBy: "ben"},
			{ID: "T2", Finding: first.Inline[0].ID, Path: "main.go", Line: 50},
		})
		if diff := cmp.Diff(first, l.Settle(in)); diff != "" {
			t.Error(diff)
		}
		l.Told("t2", first)
		if len(l.Known) != 2 {
			t.Errorf("known: %+v", l.Known)
		}
	}
}

// stored is the ledger after a stay in the store.
func stored(t *testing.T, l *Ledger) *Ledger {
	t.Helper()
	body, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var out Ledger
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// A problem that the first review missed should not be raised later, unless it is critical or the review is full.
func TestSeveritiesOnlyNarrow(t *testing.T) {
	t.Parallel()
	minor := Answer{Findings: []Finding{at(50, Minor, races), at(90, Major, "Parse panics on an empty line")}}
	for name, c := range map[string]struct {
		first []Finding
		full  bool
		want  int
	}{
		"minor ones were told":  {[]Finding{at(10, Minor, closes)}, false, 2},
		"grave ones were told":  {[]Finding{at(10, Critical, closes)}, false, 1},
		"nothing was told":      {nil, false, 2},
		"from the beginning on": {[]Finding{at(10, Major, closes)}, true, 2},
	} {
		l, _ := reviewed(c.first...)
		p := l.Settle(Input{Task: "t2", Head: "h2", Full: c.full, Answer: minor})
		if len(p.Inline) != c.want {
			t.Errorf("%s: %+v", name, p.Inline)
		}
	}
}

// Threads tell where a finding is now, and bring back what the memory has lost.
func TestObserve(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(Finding{ID: "f", Severity: Minor, Path: "main.go", StartLine: 8, Line: 10, Claim: closes})
	l.Observe([]Thread{
		{ID: "T1", Comment: 5, Finding: ids[0], Path: "main.go", Line: 25},
		{
			ID: "T2", Comment: 6, Finding: "0123", Path: "x.go", Line: 3,
			Text: "<!-- errand:finding=0123 -->\n🔴 **critical**: " + races + "\n\nBecause.", Resolved: true,
			DismissedBy: "ben",
		},
	})
	want := []Known{
		{
			Finding: Finding{ID: ids[0], Severity: Minor, Path: "main.go", StartLine: 23, Line: 25, Claim: closes},
			Status:  Open, Thread: "T1", Comment: 5, Last: "h1",
		},
		{
			Finding: Finding{ID: "0123", Severity: Critical, Path: "x.go", Line: 3, Side: Right, Claim: races},
			Status:  Dismissed, Thread: "T2", Comment: 6, By: "ben",
		},
	}
	if diff := cmp.Diff(want, l.Known); diff != "" {
		t.Error(diff)
	}
	if open, final := l.Recheck(), l.Final(); len(open) != 1 || len(final) != 1 || final[0].ID != "0123" {
		t.Errorf("open %+v, final %+v", open, final)
	}
	// Its words in another order, and the memory lost: the name is the same.
	lost, _ := reviewed(at(10, Minor, "swallowed in Save is the error of Close"))
	if lost.Known[0].ID != ids[0] {
		t.Error("another name:", lost.Known[0].ID, ids[0])
	}
	// What was posted by a report that could not say so is known with all that was said.
	l, _ = reviewed()
	p := l.Settle(Input{Task: "t2", Head: "h2", Answer: Answer{Findings: []Finding{at(50, Minor, races)}}})
	l.Observe([]Thread{{ID: "T3", Finding: p.Inline[0].ID, Path: "main.go", Line: 50}})
	if k := l.Known[0]; k.Severity != Minor || k.Claim != races || k.Last != "h2" {
		t.Errorf("unsaid: %+v", k)
	}
}

// However long a pull request lives, the ledger stays within its bounds.
func TestLedgerIsBounded(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	for n := range 30 {
		var a Answer
		for i := range maxFindings {
			f := at(i*10+1, Major, fmt.Sprintf("claim%dx%d %s", n, i, strings.Repeat("<", maxClaim-20)))
			f.Evidence = strings.Repeat("<", maxEvidence)
			a.Findings = append(a.Findings, f)
		}
		review(l, fmt.Sprint("h", n), a)
		if n := size(l); n > maxLedger || len(l.Known) > maxKnown {
			t.Fatalf("%d bytes, %d known", n, len(l.Known))
		}
		if _, _, settled := l.Plan(fmt.Sprint("task-h", n)); !settled {
			t.Fatalf("the review at hand is forgotten")
		}
	}
}

// GitHub no longer knows the line of an outdated thread: a finding that was dismissed there should not
// come back in other words because the code around it has moved, nor should the summary link to the text at its old
// line now.
func TestOutdatedThread(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(at(10, Major, closes))
	l.Known[0].StartLine = 8
	th := Thread{ID: "T1", Comment: 5, Finding: ids[0], Path: "main.go", Resolved: true, DismissedBy: "ben"}
	l.Observe([]Thread{th})
	if k := l.Known[0]; k.Line != 0 || k.StartLine != 0 || k.Status != Dismissed {
		t.Errorf("%+v", k)
	}
	if again := review(l, "h2", Answer{Findings: []Finding{at(90, Major, closes3)}}); len(again) != 0 {
		t.Error("it is said again:", again)
	}
	th.Line = 40 // a revert may bring the line back
	l.Observe([]Thread{th})
	if k := l.Known[0]; k.Line != 40 || k.StartLine != 0 {
		t.Errorf("%+v", k)
	}
}

// Findings that are only in the summary should stay there in full while they are open, because each review rewrites
// the summary.
func TestSummaryKeepsDetails(t *testing.T) {
	t.Parallel()
	first, second := at(10, Major, closes), at(90, Major, races)
	first.Evidence, second.Evidence, second.Suggestion = "Read Save.", "Read Add.", "mu.Lock()"
	l := &Ledger{}
	p := l.Settle(Input{Task: "t1", Head: "h1", Answer: Answer{Findings: []Finding{first, second}}})
	p.Inline, p.Summary = p.Inline[:1], p.Inline[1:]
	l.Told("t1", p)
	l.Observe([]Thread{{ID: "T1", Comment: 5, Finding: p.Inline[0].ID, Path: "main.go", Line: 10}})
	for _, head := range []string{"h2", "h3"} {
		p = l.Settle(Input{Task: head, Head: head})
		text := p.Text("Well.", page)
		if strings.Contains(text, "Read Save.") || !strings.Contains(text, "\n  Read Add.\n") ||
			!strings.Contains(text, "mu.Lock()") {
			t.Errorf("%s: %s", head, text)
		}
		l.Told(head, p)
	}
	id := l.Known[1].ID
	p = l.Settle(Input{Task: "h4", Head: "h4", Answer: Answer{Earlier: []Checked{{ID: id, Status: Fixed}}}})
	l.Told("h4", p)
	if k := l.Known[1]; k.Status != Fixed || k.Evidence+k.Suggestion != "" ||
		strings.Contains(p.Text("", page), "Read Add.") {
		t.Errorf("mended: %+v\n%s", k, p.Text("", page))
	}
}

// A hundred such findings are still remembered, if not with all that there is to say of them.
func TestDetailsAreBounded(t *testing.T) {
	t.Parallel()
	l := &Ledger{}
	for i := range maxKnown {
		f := at(10*i, Major, fmt.Sprintf("word%d is wrong", i))
		f.Evidence, f.Suggestion = strings.Repeat("ä", maxEvidence), strings.Repeat("x", maxSuggestion)
		task := fmt.Sprint("t", i)
		p := l.Settle(Input{Task: task, Head: task, Answer: Answer{Findings: []Finding{f}}})
		p.Inline, p.Summary = nil, p.Inline
		l.Told(task, p)
		if size(l) > maxLedger || size(p) > maxPlan {
			t.Fatalf("review %d: %d bytes, %d of them the plan", i, size(l), size(p))
		}
	}
	if len(l.Known) != maxKnown {
		t.Errorf("%d are left", len(l.Known))
	}
}

// A report that GitHub held up is closed after that of a later review: its findings are known, but the later one has
// the last word.
func TestToldLate(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(at(10, Major, closes))
	late := l.Settle(Input{Task: "t2", Head: "h2", Answer: Answer{Findings: []Finding{at(50, Major, races)}}})
	next := l.Settle(Input{Task: "t3", Head: "h3", Answer: Answer{Earlier: []Checked{{ID: ids[0], Status: Fixed}}}})
	l.Told("t3", next)
	l.Told("t2", late)
	if l.Reviewed != "h3" || l.Known[0].Status != Fixed || len(l.Known) != 2 || l.Known[1].Claim != races {
		t.Errorf("%+v", l)
	}
}

// Between two attempts to post a review, a person dismisses one of its open findings.
func TestDismissedMeanwhile(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(at(10, Major, closes))
	p := l.Settle(Input{Task: "t2", Head: "h2"})
	l.Observe([]Thread{{
		ID: "T1", Comment: 5, Finding: ids[0], Path: "main.go", Line: 10, Resolved: true, DismissedBy: "ben",
	}})
	l.Told("t2", p)
	if k := l.Known[0]; k.Status != Dismissed || k.Last != "h2" {
		t.Errorf("%+v", k)
	}
}

// A dismissal should be final, even for a finding of an overtaken review that is not recorded yet.
func TestDismiss(t *testing.T) {
	t.Parallel()
	l, ids := reviewed(at(10, Major, closes))
	overtaken := l.Settle(Input{
		Task: "overtaken", Head: "h2", Answer: Answer{Findings: []Finding{at(50, Critical, races)}},
	})
	for _, id := range []string{ids[0], overtaken.Inline[0].ID, ids[0]} {
		if !l.Dismiss(id, "octocat") {
			t.Errorf("%s is not known", id)
		}
	}
	if l.Dismiss("0123456789ab", "octocat") {
		t.Error("dismissed what there is not")
	}
	if len(l.Final()) != 2 || len(l.Recheck()) != 0 {
		t.Errorf("final %+v, open %+v", l.Final(), l.Recheck())
	}
	if again := review(l, "h3", Answer{Findings: []Finding{
		at(10, Major, closes), at(50, Critical, races),
	}}); len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
	fixed, ids := reviewed(at(10, Major, closes))
	review(fixed, "h2", Answer{Earlier: []Checked{{ID: ids[0], Status: Fixed}}})
	if fixed.Dismiss(ids[0], "octocat") {
		t.Error("dismissed what is mended")
	}
}
