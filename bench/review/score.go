package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// near is the most lines between a bug and a finding about it.
const near = 3

// score counts findings above minor.
type score struct {
	found, missed int // pull requests with a bug
	wrong         int // findings about no bug
}

// precision is the share of findings that are about a bug, and recall the share of bugs that are found.
func (s score) precision() float64 { return share(s.found, s.wrong) }
func (s score) recall() float64    { return share(s.found, s.missed) }

func share(n, rest int) float64 {
	if n+rest == 0 {
		return 100
	}
	return 100 * float64(n) / float64(n+rest)
}

var itemForm = regexp.MustCompile("(?m)^- \\S+ \\*\\*(critical|major)\\*\\*(?: \\[?`([^`]*?)(?::(\\d+))?`( \\(removed\\))?)?")

// add counts the summary of a review: with the findings that a second look has dropped, and without them.
func (p pull) add(before, after *score, summary string) {
	posted, dropped, _ := strings.Cut(summary, " dropped after a second look, which came after the assessment above:")
	kept := itemForm.FindAllStringSubmatch(posted, -1)
	all := slices.Concat(kept, itemForm.FindAllStringSubmatch(dropped, -1))
	p.count(before, all)
	p.count(after, kept)
}

// count counts the findings of one review. Several about the bug count as one.
func (p pull) count(s *score, items [][]string) {
	hit := false
	for _, m := range items {
		line, _ := strconv.Atoi(m[3])
		if p.bug != "" && m[2] == p.path && p.removed == (m[4] != "") && line >= p.line-near && line <= p.line+near {
			hit = true
		} else {
			s.wrong++
		}
	}
	switch {
	case hit:
		s.found++
	case p.bug != "":
		s.missed++
	}
}
