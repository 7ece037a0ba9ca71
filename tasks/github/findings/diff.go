package findings

import (
	"cmp"
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

// maxRange is the most lines a finding may span. Of a finding with more, its last ones count.
const maxRange = 200

// anchor finds the lines for a finding: its own, or those of them that are inside one hunk, if it quotes them. If they
// have another text, the agent has miscounted, and the finding moves to the place of its quote. It returns false if
// there is none, or if its lines are outside the hunks, where they may have that text.
func (d Diff) anchor(f Finding) (Finding, bool) {
	file := d[f.Path]
	first, end := f.Line, f.Line
	if f.StartLine > 0 && f.StartLine < f.Line {
		first = max(f.StartLine, f.Line-maxRange+1)
	}
	for ; end >= first; end-- {
		if _, inside := file.side(f.Side)[end]; inside {
			break
		}
	}
	if f.Line <= 0 || end < first {
		return f, false
	}
	quote := strings.Split(f.Original, "\n")
	here := quote[:max(0, len(quote)-(f.Line-end))]
	here = here[max(0, len(here)-(end-file.start(f.Side, 1, end)+1)):] // what is above the hunk cannot be seen
	side, above := f.Side, end-first
	moved := !file.has(side, end, here)
	if moved {
		if here = quoted(quote); len(here) == 0 {
			return f, false
		}
		if side, end = file.find(here, f.Side, f.Line); end == 0 {
			return f, false
		}
		above = f.Line - first
	}
	start := file.start(side, end-min(above, len(here)-1), end)
	f.Exact = !moved && end-start == f.Line-first && f.exact(file.side(side), start, end)
	f.Side, f.Line, f.StartLine = side, end, 0
	if start < end {
		f.StartLine = start
	}
	return f, true
}

// quoted returns a quote without the blank lines around it.
func quoted(lines []string) []string {
	blank := func(line string) bool { return recognised(line) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// start returns the first line of a range that is in the same hunk as its end.
func (f File) start(s Side, first, end int) int {
	lines, start := f.side(s), end
	for start > first && lines[start-1].hunk == lines[end].hunk {
		start--
	}
	return start
}

// has reports whether quoted lines, not all of them blank, end at a line.
func (f File) has(s Side, end int, quote []string) bool {
	for i, q := range quote {
		line, inside := f.side(s)[end-len(quote)+1+i]
		if !inside || recognised(line.text) != recognised(q) {
			return false
		}
	}
	return len(quoted(quote)) > 0
}

// recognised returns the part of a line by which it is recognised. Agents get long lines cut, and often lose the
// indentation of the others.
func recognised(line string) string {
	line = strings.TrimSpace(line)
	return line[:min(len(line), 200)]
}

// telling is the fewest words of a quote that is looked for far from its line. Lines such as "return err" are also in
// the parts of a file that the diff does not show.
const telling = 3

// find returns where quoted lines end: at the one place nearest to a line, if it is only a few lines away, or at the
// only place in the file's hunks; line 0 if there is none. The other side counts if the finding's has none.
func (f File) find(quote []string, s Side, line int) (Side, int) {
	away := func(n int) int { return max(n-line, line-n) }
	for _, side := range map[Side][]Side{Right: {Right, Left}, Left: {Left, Right}}[s.actual()] {
		var at []int
		for n := range f.side(side) {
			if f.has(side, n, quote) {
				at = append(at, n)
			}
		}
		if len(at) == 0 {
			continue
		}
		slices.SortFunc(at, func(a, b int) int { return cmp.Compare(away(a), away(b)) })
		only := len(at) == 1
		close := away(at[0]) <= near && (only || away(at[1]) > away(at[0]))
		if close || only && len(wordSet(strings.Join(quote, " "))) >= telling {
			return side, at[0]
		}
		break
	}
	return s, 0
}

// maxReplaced is the most lines a suggestion may replace or insert.
const maxReplaced = 5

// unseen reports whether a character could make lines mean something other than they show. Such text must not be
// applied by a button.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// exact reports whether a suggestion replaces exactly the lines from start to end, and the agent's quote has all of
// them with their indentation.
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

// Place puts each new finding where it can be shown: on a line of the diff that it quotes, if the agent is sure enough
// and the limit is not reached, otherwise in the summary. It may be called again with another diff.
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
	p.Inline, p.Summary, p.Dropped = inline, summary, d.anchored(p.Dropped)
	return p
}

// anchored returns refuted findings at the lines that they quote, or without a line.
func (d Diff) anchored(dropped []Finding) (list []Finding) {
	for _, f := range dropped {
		at, ok := d.anchor(f)
		if !ok {
			at.Line, at.StartLine = 0, 0
		}
		list = append(list, at)
	}
	return list
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
