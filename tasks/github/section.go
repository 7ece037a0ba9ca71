package github

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

const (
	maxTitle   = 200
	maxSection = 30_000 // bytes, which leaves people as much
)

// section is the part of a pull request's description that is ours. It stands between two lines that GitHub does not show; what looks
// like them in the agent's words is text.
type section struct {
	task, commit string
	start, end   int // where in the description it is
}

const sectionEnd = "<!-- errand:work end -->"

var sectionStart = regexp.MustCompile(`<!-- errand:work task=(\S+) commit=(\S+) thread=(\S+) -->`)

// readSection finds our section in a description.
func readSection(body string) (section, bool) {
	m := sectionStart.FindStringSubmatchIndex(body)
	if m == nil {
		return section{}, false
	}
	length := strings.Index(body[m[1]:], sectionEnd)
	if length < 0 {
		return section{}, false
	}
	return section{task: body[m[2]:m[3]], commit: body[m[4]:m[5]], start: m[0], end: m[1] + length + len(sectionEnd)}, true
}

// section tells of a task's work.
func (s *Source) section(t tasks.Task, w tasks.Work) string {
	text := markdown.Parts(strings.TrimSpace(w.Summary), maxSection, markdown.Bytes)
	said := markdown.Unclosing(text[0])
	if len(text) > 1 {
		said += "\n\n(The answer goes on. All of it is where it was asked for.)"
	}
	run := "run " + t.ID
	if s.cfg.ConsoleURL != "" {
		run = fmt.Sprintf("[%s](%s/tasks/%s)", run, s.cfg.ConsoleURL, t.ID)
	}
	return fmt.Sprintf("<!-- errand:work task=%s commit=%s thread=%s -->\n%s%s\n\n---\n<sub>Asked for by %s (%s) · %s</sub>\n%s",
		t.ID, w.Commit, url.QueryEscape(t.Thread), checked(w.Checks), said, markdown.Unping(line(s.asker(t), 100)), t.Source, run, sectionEnd)
}

// asker is who asked for a task, and who that is on GitHub where it was asked for elsewhere.
func (s *Source) asker(t tasks.Task) string {
	who, known := s.cfg.People.Find(t.Source, t.Actor)
	switch {
	case !known:
		return t.Actor
	case t.Source == s.Name() || who.GitHub == "":
		return who.Name
	}
	return who.Name + ", " + who.GitHub + " on GitHub"
}

// refusals are GitHub's words for why it did not do what it was asked.
func refusals(err error) string {
	e, ok := errors.AsType[*github.ErrorResponse](err)
	if !ok {
		return ""
	}
	said := []string{e.Message}
	for _, one := range e.Errors {
		switch {
		case one.Message != "":
			said = append(said, one.Message)
		case one.Field != "":
			said = append(said, one.Field+" is "+one.Code)
		}
	}
	return strings.TrimRight(strings.Join(said, ": "), ".")
}
