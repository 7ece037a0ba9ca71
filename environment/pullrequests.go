package environment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PullRequests is how errand opens pull requests in a repository. The zero value is the default.
type PullRequests struct {
	BranchPrefix string `yaml:"branch_prefix" default:"errand/" help:"The prefix of branches, with a slash at its end."`
	Title        string `yaml:"title" help:"What precedes titles."`
	Labels       Names  `yaml:"labels" help:"Labels."`
	Draft        string `yaml:"draft" default:"true" help:"Whether they are drafts."`
	Template     string `yaml:"template" default:"false" help:"Whether the repository's template follows errand's description."`
}

const (
	// DefaultBranchPrefix is the prefix of errand's branches.
	DefaultBranchPrefix = "errand/"
	// TemplateFile is the template for descriptions of pull requests.
	TemplateFile = ".github/pull_request_template.md"

	maxLabel       = 50 // characters, as on GitHub
	maxTitlePrefix = 50
	maxPrefix      = 50
)

var branchPrefix = regexp.MustCompile(`^([a-z0-9][a-z0-9_-]*/)+$`)

// checked returns p without its invalid parts, and a sentence about each of them.
func (p PullRequests) checked() (PullRequests, []string) {
	var wrong []string
	refusef := func(why string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("pull_requests: "+why+".", args...))
	}
	fits := func(text string, most int) bool {
		return utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, unicode.IsControl)
	}
	if b := p.BranchPrefix; b != "" && (!branchPrefix.MatchString(b) || len(b) > maxPrefix ||
		strings.HasPrefix(b, "refs/")) {
		refusef("the branch_prefix %.100q is not made of a-z, 0-9, _ and -, with a slash at its end", b)
		p.BranchPrefix = ""
	}
	if !fits(p.Title, maxTitlePrefix) {
		refusef("the title is not one line of at most %d characters", maxTitlePrefix)
		p.Title = ""
	}
	odd := func(label string) bool { return strings.TrimSpace(label) == "" || !fits(label, maxLabel) }
	if len(p.Labels) > maxList || slices.ContainsFunc(p.Labels, odd) {
		refusef("the labels are not at most %d of at most %d characters", maxList, maxLabel)
		p.Labels = nil
	}
	for name, value := range map[string]*string{"draft": &p.Draft, "template": &p.Template} {
		if !slices.Contains([]string{"", "true", "false"}, *value) {
			refusef("%s is neither true nor false", name)
			*value = ""
		}
	}
	return p, wrong
}

// under returns p with everything that the operator sets, which wins.
func (p PullRequests) under(operator PullRequests) PullRequests {
	p.BranchPrefix = cmp.Or(operator.BranchPrefix, p.BranchPrefix)
	p.Title = cmp.Or(operator.Title, p.Title)
	p.Draft, p.Template = cmp.Or(operator.Draft, p.Draft), cmp.Or(operator.Template, p.Template)
	if operator.Labels != nil {
		p.Labels = operator.Labels
	}
	return p
}
