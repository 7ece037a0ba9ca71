package review

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Diff holds the changes of a pull request, by path in the new version. GitHub takes comments only on lines inside
// hunks, which include unchanged lines.
type Diff map[string]File

// File holds the changes of one file. A file without a patch, because it is binary or too large, has no lines.
type File struct{ right, left map[int]spot }

// spot is one line inside a hunk.
type spot struct {
	hunk int
	text string
}

var hunkForm = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// ParsePatch reads the hunks of one file from GitHub's `patch` field, which lacks the lines above the first @@.
func ParsePatch(patch string) File {
	f := File{right: map[int]spot{}, left: map[int]spot{}}
	var hunk, old, oldLeft, now, nowLeft int
	for l := range strings.SplitSeq(patch, "\n") {
		if oldLeft <= 0 && nowLeft <= 0 {
			// Only between hunks: an added line may look like a header.
			if m := hunkForm.FindStringSubmatch(l); m != nil {
				hunk++
				old, oldLeft, now, nowLeft = number(m[1]), count(m[2]), number(m[3]), count(m[4])
			}
			continue
		}
		sign, text := byte(' '), ""
		if l != "" {
			sign, text = l[0], l[1:]
		}
		if sign == ' ' || sign == '-' {
			f.left[old] = spot{hunk, text}
			old, oldLeft = old+1, oldLeft-1
		}
		if sign == ' ' || sign == '+' {
			f.right[now] = spot{hunk, text}
			now, nowLeft = now+1, nowLeft-1
		}
	}
	return f
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// count parses the line count of a hunk header; a missing one means 1.
func count(s string) int {
	if s == "" {
		return 1
	}
	return number(s)
}

func (f File) side(s Side) map[int]spot {
	if s == Left {
		return f.left
	}
	return f.right
}

// maxRange is the most lines a finding may span. A finding with more is put on its last line.
const maxRange = 200

// anchor finds the lines for a finding: all of its lines, or those of them that are inside one hunk. It returns false
// if there are none. A suggestion can be exact only if all lines are there.
func (d Diff) anchor(f Finding) (Finding, bool) {
	lines := d[f.Path].side(f.Side)
	first, last := f.StartLine, f.Line
	if first <= 0 || first > last {
		first = last
	}
	first = max(first, last-maxRange+1)
	end := last
	for ; end >= first; end-- {
		if _, inside := lines[end]; inside {
			break
		}
	}
	if end < first {
		return f, false
	}
	start := end
	for start > first && lines[start-1].hunk == lines[end].hunk {
		start--
	}
	f.Exact = end == f.Line && (start == f.StartLine || f.StartLine == 0) && f.exact(lines, start, end)
	f.Line, f.StartLine = end, 0
	if start < end {
		f.StartLine = start
	}
	return f, true
}

// maxReplaced is the most lines a suggestion may replace or insert.
const maxReplaced = 5

// unseen reports whether a character could make lines mean something other than they show. Such text must not be
// applied by a button.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// exact reports whether a suggestion replaces exactly the lines from start to end. The agent's copy of the lines shows
// whether it counted correctly.
func (f Finding) exact(lines map[int]spot, start, end int) bool {
	if f.Suggestion == "" || f.Suggestion == f.Original || f.Side == Left || end-start >= maxReplaced ||
		strings.Count(f.Suggestion, "\n") >= maxReplaced || strings.ContainsFunc(f.Suggestion, unseen) {
		return false
	}
	var there []string
	for n := start; n <= end; n++ {
		there = append(there, strings.TrimSuffix(lines[n].text, "\r"))
	}
	return strings.Join(there, "\n") == f.Original
}

// Limits bounds the findings of a review.
type Limits struct {
	Max   int      // findings on lines; further ones are in the summary
	Floor Severity // the least serious that is shown at all
}

// Place puts each new finding where it can be shown: on a line of the diff, if the agent is sure enough and the limit
// is not reached, otherwise in the summary. It may be called again with another diff.
func (p Plan) Place(d Diff, l Limits) Plan {
	var inline, summary []Finding
	for _, f := range p.Inline {
		if f.Severity.Compare(l.Floor) > 0 {
			p.Below++
			continue
		}
		at, ok := d.anchor(f)
		if !ok || f.Confidence == Low || len(inline) >= l.Max {
			summary = append(summary, f)
			continue
		}
		inline = append(inline, at)
	}
	for _, f := range p.Summary {
		if f.Severity.Compare(l.Floor) > 0 {
			p.Below++
			continue
		}
		summary = append(summary, f)
	}
	Gravest(summary)
	p.Inline, p.Summary = inline, summary
	return p
}

// Posted moves all new findings to the summary, except those whose IDs were found on lines.
func (p Plan) Posted(told map[string]bool) Plan {
	all := p.Summary
	p.Summary = nil
	for _, f := range all {
		if told[f.ID] {
			p.Inline = append(p.Inline, f)
		} else {
			p.Summary = append(p.Summary, f)
		}
	}
	return p
}

// All returns the new findings of both lists, the most serious first.
func (p Plan) All() []Finding {
	all := append(append([]Finding(nil), p.Inline...), p.Summary...)
	Gravest(all)
	return all
}

// The bounds of a ledger. The store takes 256 KiB.
const (
	maxKnown   = 100       // findings of a pull request
	maxSettled = 3         // reviews whose reports may be closed again
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
	return f
}

// fit drops the least important data until the ledger is within its bounds: details, then old reviews, then closed
// findings, then the oldest ones.
func (l *Ledger) fit() {
	l.Settled = l.Settled[max(0, len(l.Settled)-maxSettled):]
	for len(l.Known) > maxKnown {
		l.forget()
	}
	for over, i := size(l)-maxLedger, 0; over > 0; {
		switch {
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

// fit brings a plan within its bounds. It drops details of earlier findings, then details of new ones, then new
// findings, each from the end.
func (p *Plan) fit() {
	over := size(p) - maxPlan
	for i := len(p.StillOpen) - 1; i >= 0 && over > 0; i-- {
		over -= p.StillOpen[i].shorten()
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
