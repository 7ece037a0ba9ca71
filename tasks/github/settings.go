package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/cache"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

const settingsFile = environment.File

// settingsReader reads the settings of repositories. It is safe for concurrent use.
type settingsReader struct {
	api   thread.Client
	gate  *gate
	cache *cache.Cache[parsedSettings]
	log   *slog.Logger
}

// settings reads a repository's settings from its base branch: changes in a pull request count after the merge. unknown
// describes the invalid parts of the file in sentences. The result is cached for a short time.
func (r *settingsReader) settings(
	ctx context.Context, t thread.Thread, base string,
) (c settings, unknown []string, err error) {
	key := strings.ToLower(t.Repo) + " " + base
	known, err := r.cache.Get(ctx, key, func(ctx context.Context) (parsedSettings, error) {
		text, err := t.File(ctx, base, settingsFile)
		if err != nil {
			return parsedSettings{}, err
		}
		if len(text) > environment.MaxFile { // a part of the file may have another meaning
			why := fmt.Sprintf("The file is larger than %d KiB, so it is ignored.", environment.MaxFile>>10)
			return parsedSettings{settings{Incomplete: true}, []string{why}}, nil
		}
		c, unknown := parseSettings([]byte(text))
		return parsedSettings{c, unknown}, nil
	})
	return known.settings, known.unknown, err
}

// parsedSettings holds the settings of a branch and the errors in them.
type parsedSettings struct {
	settings settings
	unknown  []string
}

// applyTo applies the repository's settings to a task before it is submitted. The error is an ignored if the settings
// exclude the task. If GitHub does not return the settings, the worker checks them.
func (r *settingsReader) applyTo(ctx context.Context, t draft) (draft, error) {
	o := t.origin
	if t.Profile == agent.Untrusted && !o.byPerson() {
		v, err := r.gate.mayRun(ctx, t.Task, o)
		if err != nil {
			return draft{}, err
		}
		if !v.Allowed {
			return draft{}, ignored{v.Reason, slog.LevelInfo}
		}
	}
	c, err := r.read(ctx, o.Ref, o.Base)
	if err != nil {
		r.log.Warn("handle event without the repository's settings", "err", err)
		return t, nil
	}
	if why := c.refuses(t.Kind, o, t.pr, nil); why != "" {
		return draft{}, ignored{why, slog.LevelInfo}
	}
	t.Options.Model = c.Models[t.Kind]
	return t, nil
}

// read returns the settings of the repository that an event is about.
func (r *settingsReader) read(ctx context.Context, of thread.Ref, base string) (settings, error) {
	t, err := r.api.Reach(ctx, of)
	if err != nil {
		return settings{}, err
	}
	c, _, err := r.settings(ctx, t, base)
	return c, err
}

// bySettings begins the reasons why a repository's settings exclude work.
const bySettings = "The repository's settings "

// refuses returns why a kind of work is not done automatically on a pull request that changes these files, or "".
func (c settings) refuses(kind string, o origin, pr *github.PullRequest, files []string) string {
	switch {
	case o.Issue != 0 && c.Issues == issuesOff:
		return bySettings + "switch issues off."
	case o.byPerson():
		return ""
	case !c.enabled(kind):
		return bySettings + "switch " + kind + " off."
	}
	return c.skips(pr, files)
}

// verificationCommands returns all the commands that should succeed before work on a branch is published, or an error.
func (r *settingsReader) verificationCommands(ctx context.Context, repo, base string) ([]string, error) {
	t, err := r.api.Reach(ctx, thread.Ref{Repo: repo})
	if err != nil {
		return nil, r.api.BriefError("reach "+repo, err)
	}
	c, _, err := r.settings(ctx, t, base)
	if err == nil && c.Incomplete {
		err = thread.Refuse("Not all checks in " + settingsFile + " of " + repo + " can be read.")
	}
	return c.Checks, err
}

// limits returns the limits of a review and the invalid settings. If the settings are permanently unreadable, the
// defaults apply.
func (r *report) limits(ctx context.Context) (review.Limits, []string, error) {
	l := review.Limits{Max: 6, Floor: review.Minor}
	c, unknown, err := r.by.settings.settings(ctx, r.Thread, r.o.Base)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		r.log.Warn("review without the repository's settings", "why", input.Sentence)
		return l, nil, nil
	}
	if err != nil {
		return l, nil, err
	}
	if c.Review.MaxFindings > 0 {
		l.Max = c.Review.MaxFindings
	}
	if c.Review.Severity != "" {
		l.Floor = review.Severity(c.Review.Severity)
	}
	return l, unknown, nil
}

// settingsErrors returns the errors in the repository's settings as the end of a comment.
func settingsErrors(unknown []string) string {
	if len(unknown) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n#### `" + settingsFile + "`\n")
	for _, one := range unknown {
		b.WriteString("\n- " + markdown.NeutralLine(one))
	}
	return b.String()
}

// settings is .github/errand.yml, the repository's own settings. The zero value is that of a repository without one.
type settings struct {
	Triggers map[string]bool `yaml:"triggers"` // kinds of automatic work, on or off; see on
	Skip     skip            `yaml:"skip"`
	Review   struct {
		Severity     string `yaml:"severity"`     // the least serious to show: critical, major, minor; "" for all
		MaxFindings  int    `yaml:"max_findings"` // on lines; 0 for the default
		Instructions string `yaml:"instructions"` // a file of the base branch with more instructions for reviewers

		Scoped   []scoped `yaml:"scoped"`   // instructions for some paths
		Unwanted []string `yaml:"unwanted"` // findings that are not wanted, in words
	} `yaml:"review"`
	Issues string `yaml:"issues"` // which issues errand answers; "" is issuesAsk
	// commands that have to succeed; the worker runs them before it publishes
	Checks []string          `yaml:"checks"`
	Models map[string]string `yaml:"models"` // by kind of task

	environment.Declaration `yaml:",inline"` // checked here, and used by workers

	Incomplete bool `yaml:"-"` // Checks may lack commands that could not be read
}

// The values of settings.Issues.
const (
	issuesOff  = "off"
	issuesAsk  = "ask"  // issues on which people ask errand
	issuesAuto = "auto" // also all new issues by people with write access
)

// skip selects pull requests without automatic work.
type skip struct {
	Paths    []string `yaml:"paths"`    // that change only these files, as in agent.Rule
	Labels   []string `yaml:"labels"`   // with one of these labels
	Authors  []string `yaml:"authors"`  // by one of these authors
	Branches []string `yaml:"branches"` // into one of these branches; * matches any characters except a slash
}

// enabled reports whether a kind of work is done automatically.
func (c settings) enabled(kind string) bool {
	if wanted, ok := c.Triggers[kind]; ok {
		return wanted
	}
	return kinds[kind].automatic
}

// skips returns why there is no automatic work on a pull request that changes these files, or "". files is nil if they
// are not known yet.
func (c settings) skips(pr *github.PullRequest, files []string) (why string) {
	for _, l := range pr.Labels {
		if containsFold(c.Skip.Labels, l.GetName()) {
			return bySettings + "skip the label " + untrusted.Line(l.GetName(), 50) + "."
		}
	}
	if author := pr.GetUser().GetLogin(); containsFold(c.Skip.Authors, author) {
		return bySettings + "skip pull requests of " + author + "."
	}
	base := pr.GetBase().GetRef()
	if slices.ContainsFunc(c.Skip.Branches, func(p string) bool { return pattern.Match(p, base) }) {
		return bySettings + "skip pull requests against " + untrusted.Line(base, 100) + "."
	}
	var skipped []*regexp.Regexp
	for _, p := range c.Skip.Paths {
		skipped = append(skipped, agent.Paths(p))
	}
	worth := func(file string) bool {
		return !slices.ContainsFunc(skipped, func(p *regexp.Regexp) bool { return p.MatchString(file) })
	}
	if len(files) > 0 && !slices.ContainsFunc(files, worth) {
		return bySettings + "skip all files that the pull request changes."
	}
	return ""
}

func containsFold(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.EqualFold(have, s) })
}

// Bounds of what a repository can make errand store or do.
const (
	maxList   = 50  // entries
	maxEntry  = 300 // characters of one
	maxChosen = 20  // findings on lines
)

// parseSettings reads the file. It skips invalid settings and returns a line about each.
func parseSettings(data []byte) (c settings, wrong []string) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(&c)
	if te, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, e := range te.Errors {
			wrong = append(wrong, plainYAMLError(e))
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return settings{Incomplete: true}, []string{"The file is not YAML: " +
			untrusted.Line(strings.TrimPrefix(err.Error(), "yaml: "), maxEntry) + "."}
	}
	c, wrong = c.validated(wrong)
	c.Incomplete = len(c.Checks) != wantedChecks(data)
	return c, wrong
}

// wantedChecks counts the checks in a file, including invalid ones.
func wantedChecks(data []byte) int {
	var c struct {
		Checks yaml.Node `yaml:"checks"`
	}
	_ = yaml.Unmarshal(data, &c) // other errors are reported elsewhere
	node := &c.Checks
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node.Kind == yaml.SequenceNode:
		return len(node.Content)
	case node.IsZero(), node.Tag == "!!null":
		return 0
	}
	return 1
}

var (
	unknownField = regexp.MustCompile(`^line (\d+): field (.+) not found in type .*$`)
	wrongKind    = regexp.MustCompile(`^(line \d+): .*$`)
)

// plainYAMLError rewrites an error of the YAML package, which mentions Go types, for people.
func plainYAMLError(e string) string {
	if m := unknownField.FindStringSubmatch(e); m != nil {
		return fmt.Sprintf("Line %s: unknown setting %s.", m[1], untrusted.Code(m[2], maxEntry))
	}
	if m := wrongKind.FindStringSubmatch(e); m != nil {
		return "L" + m[1][1:] + ": the value has the wrong type."
	}
	return untrusted.Line(e, maxEntry)
}

// validated drops settings that could be read but make no sense.
func (c settings) validated(wrong []string) (settings, []string) {
	refuse := func(key, why string) { wrong = append(wrong, untrusted.Code(key, maxEntry)+" "+why+".") }
	for _, kind := range slices.Sorted(maps.Keys(c.Triggers)) {
		if !kinds[kind].automatic {
			refuse("triggers."+kind, "is not a kind of automatic work")
			delete(c.Triggers, kind)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Models)) {
		if _, ok := kinds[kind]; !ok || !modelForm.MatchString(c.Models[kind]) {
			refuse("models."+kind, "is not a model name for a kind of task")
			delete(c.Models, kind)
		}
	}
	for _, l := range []struct {
		key  string
		list *[]string
		good func(string) bool
	}{
		{"skip.paths", &c.Skip.Paths, nil},
		{"skip.labels", &c.Skip.Labels, nil},
		{"skip.authors", &c.Skip.Authors, nil},
		{"skip.branches", &c.Skip.Branches, pattern.Check},
		{"review.unwanted", &c.Review.Unwanted, nil},
		{"checks", &c.Checks, nil},
	} {
		valid := slices.DeleteFunc(slices.Clone(*l.list), func(s string) bool {
			return badEntry(s) || l.good != nil && !l.good(s)
		})
		if valid = valid[:min(len(valid), maxList)]; len(valid) < len(*l.list) {
			refuse(l.key, "has invalid entries")
		}
		*l.list = valid
	}
	valid := slices.DeleteFunc(slices.Clone(c.Review.Scoped), func(s scoped) bool { return !s.valid() })
	if valid = valid[:min(len(valid), maxList)]; len(valid) < len(c.Review.Scoped) {
		refuse("review.scoped", "has invalid entries")
	}
	c.Review.Scoped = valid
	c.dropUnknownWords(refuse)
	if n := c.Review.MaxFindings; n < 0 || n > maxChosen {
		refuse("review.max_findings", fmt.Sprintf("is not a number from 1 to %d", maxChosen))
		c.Review.MaxFindings = 0
	}
	if p := c.Review.Instructions; p != "" && (path.Clean("/"+p) != "/"+p || utf8.RuneCountInString(p) > maxEntry) {
		refuse("review.instructions", "is not the path of a file in the repository")
		c.Review.Instructions = ""
	}
	var more []string
	c.Declaration, more = c.Checked()
	return c, append(wrong, more...)
}

// dropUnknownWords drops settings whose value is not one of their possible words.
func (c *settings) dropUnknownWords(refuse func(key, why string)) {
	for _, one := range []struct {
		key   string
		value *string
		of    []string
		why   string
	}{
		{
			"review.severity", &c.Review.Severity,
			[]string{"critical", "major", "minor"},
			"is neither critical, major nor minor",
		},
		{"issues", &c.Issues, []string{issuesOff, issuesAsk, issuesAuto}, "is neither off, ask nor auto"},
	} {
		if *one.value != "" && !slices.Contains(one.of, *one.value) {
			refuse(one.key, one.why)
			*one.value = ""
		}
	}
}

// modelForm matches what tasks accepts as the name of a model.
var modelForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:\[\]-]{0,99}$`)
