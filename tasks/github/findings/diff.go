package findings

import (
	"regexp"
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
