// Package settings reads .github/errand.yml or errand.yaml, the settings of a repository, as they are on its protected
// branch.
package settings

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

const File = environment.File

// Settings is .github/errand.yml, the repository's own settings. The zero value is that of a repository without one.
type Settings struct {
	Triggers map[string]bool `yaml:"triggers"` // kinds of automatic work, on or off; see on
	Skip     skip            `yaml:"skip"`
	Review   struct {
		Severity     string `yaml:"severity"`     // the least serious to show: critical, major, minor; "" for all
		MaxFindings  int    `yaml:"max_findings"` // on lines; 0 for the default
		Instructions string `yaml:"instructions"` // a file of the base branch with more instructions for reviewers

		Verify *bool `yaml:"verify"` // check new findings a second time; nil is true

		Scoped   []Scoped          `yaml:"scoped"`   // instructions for some paths
		Unwanted environment.Lines `yaml:"unwanted"` // findings that are not wanted, in words
	} `yaml:"review"`
	Issues string `yaml:"issues"` // which issues errand answers; "" is [IssuesAsk]
	// commands that have to succeed; the worker runs them before it publishes
	Checks environment.Lines `yaml:"checks"`

	environment.Declaration `yaml:",inline"` // checked here, and used by workers

	Branch     string `yaml:"-"` // where they were read; "" is the default branch
	Incomplete bool   `yaml:"-"` // Checks may lack commands that could not be read
}

// The values of settings.Issues.
const (
	IssuesOff  = "off"
	IssuesAsk  = "ask"  // issues on which people ask errand
	IssuesAuto = "auto" // also all new issues by people with write access
)

// skip selects pull requests without automatic work.
type skip struct {
	Paths    environment.Names `yaml:"paths"`    // that change only these files, as in agent.Rule
	Labels   environment.Names `yaml:"labels"`   // with one of these labels
	Authors  environment.Names `yaml:"authors"`  // by one of these authors
	Branches environment.Names `yaml:"branches"` // into one of these branches; * matches any characters except a slash
}

// Enabled reports whether a kind of work is done automatically.
func (c Settings) Enabled(kind string) bool {
	if wanted, ok := c.Triggers[kind]; ok {
		return wanted
	}
	return subject.Kinds[kind].Automatic
}

// skips returns why there is no automatic work on a pull request that changes these files, or "". files is nil if they
// are not known yet.
func (c Settings) skips(pr *github.PullRequest, files []string) (why string) {
	for _, l := range pr.Labels {
		if containsFold(c.Skip.Labels, l.GetName()) {
			return Reason + "skip the label " + untrusted.Line(l.GetName(), 50) + "."
		}
	}
	if author := pr.GetUser().GetLogin(); containsFold(c.Skip.Authors, author) {
		return Reason + "skip pull requests of " + author + "."
	}
	base := pr.GetBase().GetRef()
	if slices.ContainsFunc(c.Skip.Branches, func(p string) bool { return pattern.Match(p, base) }) {
		return Reason + "skip pull requests against " + untrusted.Line(base, 100) + "."
	}
	var skipped []*regexp.Regexp
	for _, p := range c.Skip.Paths {
		skipped = append(skipped, agent.Paths(p))
	}
	worth := func(file string) bool {
		return !slices.ContainsFunc(skipped, func(p *regexp.Regexp) bool { return p.MatchString(file) })
	}
	if len(files) > 0 && !slices.ContainsFunc(files, worth) {
		return Reason + "skip all files that the pull request changes."
	}
	return ""
}

// Refuses returns why a kind of work is not done automatically on a pull request that changes these files, or "".
func (c Settings) Refuses(kind string, o subject.Origin, pr *github.PullRequest, files []string) string {
	switch {
	case o.Issue != 0 && c.Issues == IssuesOff:
		return Reason + "switch issues off."
	case o.ByPerson():
		return ""
	case !c.Enabled(kind):
		return Reason + "switch " + kind + " off."
	}
	return c.skips(pr, files)
}

// Reason begins the reasons why a repository's settings exclude work.
const Reason = "The repository's settings "

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, s) })
}
