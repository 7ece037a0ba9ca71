package findings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// Ledger remembers the findings of one pull request. It is plain data, stored as JSON. Its methods change it, and give
// the same result for the same input in every process.
//
// A review is settled before it is posted and recorded by Told afterwards. If a review was settled but not posted, for
// example because the head had moved, it leaves no finding behind: the next review finds them again.
type Ledger struct {
	Reviewed string    `json:"reviewed,omitempty"` // head of the last posted review
	Floor    Severity  `json:"floor,omitempty"`    // less serious findings are no longer reported; "" reports all
	Known    []Known   `json:"known,omitempty"`    // in the order in which they were posted
	Settled  []settled `json:"settled,omitempty"`  // the newest reviews, the newest last
	Refuted  []Finding `json:"refuted,omitempty"`  // by second looks, without details, the newest last
}

// settled is the decision for one task. If its report is closed again, in any process, it says the same.
type settled struct {
	Task string `json:"task"`
	Head string `json:"head"`
	Plan Plan   `json:"plan"`
	Told bool   `json:"told,omitempty"`
}

// Input is what Settle decides from.
type Input struct {
	Task   string // task and ending; each is settled once
	Head   string // commit
	Full   bool   // a review from scratch: all severities count again
	Answer Answer
}

// Plan returns the decision for a task, and whether it was posted. found is false if the task was not settled, or if
// several others were settled after it.
func (l *Ledger) Plan(task string) (p Plan, posted, found bool) {
	if i := l.index(task); i >= 0 {
		return l.Settled[i].Plan, l.Settled[i].Told, true
	}
	return Plan{}, false, false
}

func (l *Ledger) index(task string) int {
	return slices.IndexFunc(l.Settled, func(s settled) bool { return s.Task == task })
}

// Settle decides the content of a review: findings that are new and that no person has dismissed or answered. A later
// review raises nothing less serious than the ones before. All new findings are in the plan's Inline.
func (l *Ledger) Settle(in Input) Plan {
	if p, _, done := l.Plan(in.Task); done {
		return p
	}
	news, seen := l.news(in)
	var p Plan
	for _, f := range news {
		if f.Verdict == Refuted {
			p.Dropped = append(p.Dropped, f)
			continue
		}
		if repeated(p.Inline, f) {
			continue
		}
		f.ID = l.id(f, p.Inline)
		p.Inline = append(p.Inline, f)
	}
	l.recheck(&p, in, seen)
	p.fit()
	l.Settled = append(l.Settled, settled{Task: in.Task, Head: in.Head, Plan: p})
	l.fit()
	return p
}

// news returns the findings of an answer that are new, the most serious first, and which known ones it repeats. What
// the answer itself repeats is in news, too, because any of them may be refuted.
func (l *Ledger) news(in Input) (news []Finding, seen map[int]bool) {
	found := slices.Clone(in.Answer.Findings)
	Gravest(found) // of duplicates in one answer, keep the most serious
	seen = map[int]bool{}
	for i, at := range match(l.Known, found) {
		if at >= 0 && !l.Known[at].closed() {
			seen[at] = true
			continue
		}
		f := found[i]
		if below := !in.Full && l.Floor != "" && f.Severity.Compare(l.Floor) > 0; !below {
			news = append(news, f)
		}
	}
	return news, seen
}

// closed reports whether a finding counts as new if it comes up again.
func (k Known) closed() bool { return k.Status == Fixed || k.Status == Outdated }

// recheck sorts the open findings into the plan: what is fixed, what is gone and what is still open. One that the agent
// has found again is not fixed, even if the agent says so. The ledger follows when the review is posted; see rechecked.
func (l *Ledger) recheck(p *Plan, in Input, seen map[int]bool) {
	said := map[string]Status{}
	for _, c := range in.Answer.Earlier {
		said[c.ID] = c.Status
	}
	for i, k := range l.Known {
		if k.Status != Open {
			continue
		}
		k.Last = in.Head
		if now := said[k.ID]; !seen[i] && (now == Fixed || now == Outdated) {
			k.Status = now
		}
		switch {
		case k.Status == Fixed:
			p.Fixed = append(p.Fixed, k)
		case k.Status == Outdated:
			p.Gone = append(p.Gone, k)
		case !k.Answered:
			p.StillOpen = append(p.StillOpen, k)
		}
	}
	for _, list := range [][]Known{p.Fixed, p.Gone, p.StillOpen} {
		slices.SortStableFunc(list, func(a, b Known) int { return gravest(a.Finding, b.Finding) })
	}
}

// repeated reports whether an answer already has the same finding.
func repeated(before []Finding, f Finding) bool {
	return slices.ContainsFunc(before, func(b Finding) bool {
		return b.Path == f.Path && b.Side.actual() == f.Side.actual() && together(b, f) &&
			alike(b.Claim, f.Claim) >= alikeSome
	})
}

// Told records that the plan settled for a task is posted and readable. It may be called again.
func (l *Ledger) Told(task string, posted Plan) {
	i := l.index(task)
	if i < 0 || l.Settled[i].Told {
		return
	}
	s := &l.Settled[i]
	s.Told, s.Plan.Inline, s.Plan.Below, s.Plan.Dropped = true, posted.All(), posted.Below, posted.Dropped
	if overtaken := slices.ContainsFunc(l.Settled[i+1:], func(later settled) bool { return later.Told }); !overtaken {
		l.Reviewed = s.Head
		l.rechecked(s.Plan)
	}
	for i, f := range slices.Concat(posted.Inline, posted.Summary) {
		if f.Original = ""; i < len(posted.Inline) {
			f = f.brief() // its thread has the rest; the summary is written again each time
		}
		if l.find(f.ID) < 0 { // or Observe has adopted its thread already
			l.Known = append(l.Known, Known{Finding: f, Status: Open, Last: s.Head})
		}
	}
	l.narrow(slices.Concat(posted.Inline, posted.Summary))
	l.refute(posted)
	l.fit()
}

// refute remembers what a second look has refuted, until a review reports it after all.
func (l *Ledger) refute(posted Plan) {
	for _, f := range slices.Concat(posted.All(), posted.Dropped) {
		l.Refuted = slices.DeleteFunc(l.Refuted, func(r Finding) bool {
			return r.Path == f.Path && alike(r.Claim, f.Claim) >= alikeWhereso
		})
		if f.Verdict == Refuted {
			f.Reason = ""
			l.Refuted = append(l.Refuted, f.brief())
		}
	}
	l.Refuted = l.Refuted[max(0, len(l.Refuted)-maxRefuted):]
}

// rechecked records a plan's verdicts on earlier findings. One that the plan has as open may have been dismissed since.
func (l *Ledger) rechecked(p Plan) {
	for _, k := range slices.Concat(p.Fixed, p.Gone, p.StillOpen) {
		at := l.find(k.ID)
		if at < 0 {
			continue
		}
		if l.Known[at].Last = k.Last; k.closed() {
			l.Known[at].Status, l.Known[at].Finding = k.Status, l.Known[at].brief()
		}
	}
}

func (l *Ledger) find(id string) int {
	return slices.IndexFunc(l.Known, func(k Known) bool { return k.ID == id })
}

// narrow raises the floor to the least serious posted finding, so later reviews do not raise smaller ones.
// Major findings are always raised, because later code may be new code.
func (l *Ledger) narrow(told []Finding) {
	if len(told) == 0 {
		return
	}
	least := slices.MaxFunc(told, func(a, b Finding) int { return a.Severity.Compare(b.Severity) })
	if least.Severity.Compare(Major) <= 0 {
		l.Floor = Major
	}
}

// Recheck lists the open findings that the agent should check again.
func (l *Ledger) Recheck() []Known {
	return l.those(func(k Known) bool { return k.Status == Open })
}

// Waits reports whether the last posted review is of a head, and the pull request is not merged and has findings that
// people have neither fixed, dismissed nor answered.
func (l *Ledger) Waits(head string) bool {
	return l.Reviewed == head && slices.ContainsFunc(l.Known, func(k Known) bool {
		return k.Status == Open && !k.Answered && !k.Counted
	})
}

// Final lists the findings that a person has dismissed or answered and that must not be raised again. Answered findings
// are still open.
func (l *Ledger) Final() []Known {
	return l.those(func(k Known) bool { return k.Status == Dismissed || k.Status == Open && k.Answered })
}

// Dismiss closes an open finding for good at the request of a person with write access, and returns false if the ID is
// unknown. It may be called again. A finding in the summary of a superseded review is not known yet; it will not be
// raised.
func (l *Ledger) Dismiss(id, by string) bool {
	at := l.find(id)
	if at < 0 {
		for _, s := range l.Settled {
			if i := slices.IndexFunc(s.Plan.Inline, func(f Finding) bool { return f.ID == id }); i >= 0 {
				l.Known = append(l.Known, Known{
					Finding: s.Plan.Inline[i].brief(), Status: Dismissed, Last: s.Head, By: by,
				})
				l.fit()
				return true
			}
		}
		return false
	}
	if k := &l.Known[at]; k.Status == Open || k.Status == Dismissed && k.By == "" {
		k.Status, k.By = Dismissed, by
	}
	return l.Known[at].Status == Dismissed
}

func (l *Ledger) those(which func(Known) bool) []Known {
	return slices.DeleteFunc(slices.Clone(l.Known), func(k Known) bool { return !which(k) })
}

// Thread is the current state of a conversation on a line of the diff that errand started with a finding.
type Thread struct {
	ID      string // node ID
	Comment int64  // the first one of the thread
	Finding string // ID of the finding, from the first comment's marker
	Path    string
	Line    int    // in the present diff; 0 if the line is no longer in it
	Text    string // of the first comment

	Resolved bool
	Ours     bool // errand resolved it
	Answered bool // a person with a say in the repository has replied

	DismissedBy string // the person with write access who resolved it or marked it 👎, or ""
	Disliked    bool   // it was marked 👎 by them
	Changed     bool   // its file may have changed since the finding was last checked
}

// Observe updates the ledger with what people did: a finding is dismissed if somebody with write access resolved its
// thread or marked it 👎, an answered one is not raised again, and a finding moves with its line. If the ledger lacks
// the finding of one of errand's threads, because the ledger was lost, Observe adds it.
func (l *Ledger) Observe(threads []Thread) {
	for _, t := range threads {
		at := l.find(t.Finding)
		if at < 0 {
			l.Known = append(l.Known, l.adopt(t))
			at = len(l.Known) - 1
		}
		k := &l.Known[at]
		k.Thread, k.Comment, k.Answered = t.ID, t.Comment, k.Answered || t.Answered
		k.move(t.Line)
		switch {
		case k.Status == Dismissed && k.By == "" && t.Disliked:
			k.By = t.DismissedBy
		case k.Status != Open:
		case t.Ours && t.Resolved:
			k.Status = Fixed
		case t.DismissedBy == "": // the author of a pull request from a fork may resolve its threads, too
		case t.Disliked || t.Line != 0 && !t.Changed:
			k.Status, k.By = Dismissed, t.DismissedBy
		default: // its lines had changed, or perhaps others that fix it
			k.Status, k.Unclear = Dismissed, t.Line != 0
		}
	}
	l.fit()
}

// move moves a finding to the current place of its line. If the line is gone, the finding concerns the whole file.
func (k *Known) move(line int) {
	switch {
	case line == 0:
		k.StartLine = 0
	case k.StartLine > 0:
		k.StartLine = max(1, k.StartLine+line-k.Line)
	}
	k.Line = line
}

// adopt makes a known finding of a thread: from the plan of a report that could not record it, or from the comment.
func (l *Ledger) adopt(t Thread) Known {
	for _, s := range l.Settled {
		for _, f := range s.Plan.Inline {
			if f.ID == t.Finding {
				return Known{Finding: f.brief(), Status: Open, Last: s.Head}
			}
		}
	}
	f := Finding{ID: t.Finding, Severity: Major, Path: t.Path, Line: t.Line, Side: Right}
	_, text, _ := strings.Cut(t.Text, "\n")
	text, _, _ = strings.Cut(text, "\n")
	said, claim, _ := strings.Cut(text, "**: ")
	if _, word, _ := strings.Cut(said, "**"); Severity(word).Known() {
		f.Severity, text = Severity(word), claim
	}
	f.Claim = untrusted.Short(text, maxClaim)
	return Known{Finding: f, Status: Open}
}

// The bounds of a ledger. The store takes 256 KiB.
const (
	maxKnown   = 100       // findings of a pull request
	maxSettled = 3         // reviews whose reports may be closed again
	maxRefuted = 20        // refuted findings, of which the agent hears
	maxPlan    = 120 << 10 // bytes of one review, as JSON
	maxLedger  = 240 << 10 // bytes of the whole ledger
)

// id derives the ID of a new finding from its file and the words of its claim, so that it stays the same if the ledger
// is lost. A finding that was fixed and has come back gets a number.
func (l *Ledger) id(f Finding, also []Finding) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + strings.Join(slices.Sorted(maps.Keys(words(f.Claim))), " ")))
	name := hex.EncodeToString(sum[:6])
	taken := func(id string) bool {
		return l.find(id) >= 0 || slices.ContainsFunc(also, func(a Finding) bool { return a.ID == id })
	}
	for id, n := name, 2; ; n++ {
		if !taken(id) {
			return id
		}
		id = fmt.Sprintf("%s-%d", name, n)
	}
}

// brief returns a finding without its details.
func (f Finding) brief() Finding {
	f.Evidence, f.Original, f.Suggestion = "", "", ""
	if f.Verdict != Refuted {
		f.Reason = ""
	}
	return f
}

// fit drops the least important data until the ledger is within its bounds: refuted findings, then details, then old
// reviews, then closed findings, then the oldest ones.
func (l *Ledger) fit() {
	l.Settled = l.Settled[max(0, len(l.Settled)-maxSettled):]
	for len(l.Known) > maxKnown {
		l.forget()
	}
	for over, i := size(l)-maxLedger, 0; over > 0; {
		switch {
		case len(l.Refuted) > 0:
			over -= size(l.Refuted[0])
			l.Refuted = l.Refuted[1:]
		case i < len(l.Known):
			over -= l.Known[i].shorten()
			i++
		case len(l.Settled) > 1:
			over -= size(l.Settled[0])
			l.Settled = l.Settled[1:]
		case len(l.Known) > 0:
			over -= size(l.forget())
		default:
			return // the current plan has its own bounds
		}
	}
}

// forget drops the least important known finding.
func (l *Ledger) forget() Known {
	at := max(0, slices.IndexFunc(l.Known, Known.closed))
	k := l.Known[at]
	l.Known = slices.Delete(l.Known, at, at+1)
	return k
}

// shorten removes the details of a finding and returns how many bytes that saves.
func (f *Finding) shorten() int {
	before := size(f)
	*f = f.brief()
	return before - size(f)
}

// fit brings a plan within its bounds. It drops details of refuted findings, then those of earlier ones, then refuted
// findings, then details of new ones, then new findings, each from the end.
func (p *Plan) fit() {
	over := size(p) - maxPlan
	for i := len(p.Dropped) - 1; i >= 0 && over > 0; i-- {
		over -= p.Dropped[i].shorten()
	}
	for i := len(p.StillOpen) - 1; i >= 0 && over > 0; i-- {
		over -= p.StillOpen[i].shorten()
	}
	for n := len(p.Dropped); n > 0 && over > 0; n-- {
		over -= size(p.Dropped[n-1])
		p.Dropped, p.Unlisted = p.Dropped[:n-1], p.Unlisted+1
	}
	for i := len(p.Inline) - 1; i >= 0 && over > 0; i-- {
		over -= p.Inline[i].shorten()
	}
	for n := len(p.Inline); n > 0 && over > 0; n-- {
		over -= size(p.Inline[n-1])
		p.Inline = p.Inline[:n-1]
	}
}

func size(v any) int {
	body, _ := json.Marshal(v) // plain data, which always marshals
	return len(body)
}
