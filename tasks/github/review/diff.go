package review

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Diff is what a pull request changes, by the path of the new version. It says on which lines GitHub takes a comment: those inside
// hunks, the unchanged ones there included.
type Diff map[string]File

// File is what changes in one file. A file without a text of its changes, being binary or too large, has no lines.
type File struct{ right, left map[int]spot }

// spot is one line inside a hunk.
type spot struct {
	hunk int
	text string
}

var hunkForm = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// ParsePatch reads the hunks of one file, as GitHub has them in `patch`: without the lines above the first @@.
func ParsePatch(patch string) File {
	f := File{right: map[int]spot{}, left: map[int]spot{}}
	var hunk, old, oldLeft, now, nowLeft int
	for l := range strings.SplitSeq(patch, "\n") {
		if oldLeft <= 0 && nowLeft <= 0 {
			// Only between hunks: a line that was added may look like a header.
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

// count is how many lines a header announces: one if it does not say.
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

// maxRange is how many lines a finding may stand at. One that is about more is about the last of them.
const maxRange = 200

// anchor finds where a finding can stand: at its lines, or at those of them that are inside one hunk. It reports false where there are
// none. Only at all its lines may a suggestion be exact.
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

// maxReplaced is how many lines a suggestion may take or give.
const maxReplaced = 5

// unseen reports whether a character could make lines mean something else than they show, which nobody should take over by a button.
func unseen(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// exact reports whether a suggestion replaces just the lines from start to end. That the agent has counted right is shown by its
// copy of them.
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
