package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed corpus.txt
var corpusText string

// pull is a small pull request of the corpus: one file, with a known bug or without.
type pull struct {
	name, path, title string
	old, now          string // the file
	bug               string // the text of the line with the bug; "": none
	line              int    // its number
	removed           bool   // it is a line of the old version
}

// readCorpus parses corpus.txt: a heading "# name bug" or "# name clean", lines "key: value", and the whole file as a
// diff shows it, without hunks.
func readCorpus(text string) (all []pull, err error) {
	for _, one := range strings.Split("\n"+text, "\n# ")[1:] {
		p := pull{}
		head, rest, _ := strings.Cut(one, "\n")
		name, kind, _ := strings.Cut(head, " ")
		p.name = name
		for l := range strings.SplitSeq(strings.TrimSuffix(rest, "\n"), "\n") {
			key, value, _ := strings.Cut(l, ": ")
			switch {
			case strings.HasPrefix(l, "+"):
				p.now += l[1:] + "\n"
			case strings.HasPrefix(l, "-"):
				p.old += l[1:] + "\n"
			case strings.HasPrefix(l, " "):
				p.old, p.now = p.old+l[1:]+"\n", p.now+l[1:]+"\n"
			case key == "path":
				p.path = value
			case key == "title":
				p.title = value
			case key == "bug":
				p.bug = value
			case key == "side":
				p.removed = value == "LEFT"
			default:
				return nil, fmt.Errorf("read %s: unknown line %q", name, l)
			}
		}
		if p.line, err = p.find(); err != nil || (kind == "bug") != (p.bug != "") {
			return nil, fmt.Errorf("read %s: a %s pull request with the bug %q: %w", name, kind, p.bug, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// find returns the line of the bug.
func (p pull) find() (at int, err error) {
	if p.bug == "" {
		return 0, nil
	}
	version := p.now
	if p.removed {
		version = p.old
	}
	for i, l := range strings.Split(version, "\n") {
		if strings.TrimSpace(l) == p.bug {
			if at != 0 {
				return 0, fmt.Errorf("line %d has the same text", i+1)
			}
			at = i + 1
		}
	}
	if at == 0 {
		return 0, fmt.Errorf("no line is %q", p.bug)
	}
	return at, nil
}
