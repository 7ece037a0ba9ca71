package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// Bounds of what a repository can make errand store or do.
const (
	maxList   = 50  // entries
	maxEntry  = 300 // characters of one
	maxChosen = 20  // findings on lines
)

// Parse reads the file. It skips invalid settings and returns a line about each.
func Parse(data []byte) (c Settings, wrong []string) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err := dec.Decode(&c)
	if te, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, e := range te.Errors {
			wrong = append(wrong, plainYAMLError(e))
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return Settings{Incomplete: true}, []string{"The file is not YAML: " +
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

var unknownField = regexp.MustCompile(`^line (\d+): field (.+) not found in type .*$`)

// plainYAMLError rewrites an error of the YAML package, which mentions Go types, for people.
func plainYAMLError(e string) string {
	if m := unknownField.FindStringSubmatch(e); m != nil {
		return fmt.Sprintf("Line %s: unknown setting %s.", m[1], untrusted.Code(m[2], maxEntry))
	}
	return environment.WrongType(e)
}

// validated drops settings that could be read but make no sense.
func (c Settings) validated(wrong []string) (Settings, []string) {
	refuse := func(key, why string) { wrong = append(wrong, untrusted.Code(key, maxEntry)+" "+why+".") }
	for _, kind := range slices.Sorted(maps.Keys(c.Triggers)) {
		if !subject.Kinds[kind].Automatic {
			refuse("triggers."+kind, "is not a kind of automatic work")
			delete(c.Triggers, kind)
		}
	}
	for _, l := range []struct {
		key  string
		list *[]string
		good func(string) bool
	}{
		{"skip.paths", (*[]string)(&c.Skip.Paths), nil},
		{"skip.labels", (*[]string)(&c.Skip.Labels), nil},
		{"skip.authors", (*[]string)(&c.Skip.Authors), nil},
		{"skip.branches", (*[]string)(&c.Skip.Branches), pattern.Check},
		{"review.unwanted", (*[]string)(&c.Review.Unwanted), nil},
		{"checks", (*[]string)(&c.Checks), nil},
	} {
		valid := slices.DeleteFunc(slices.Clone(*l.list), func(s string) bool {
			return badEntry(s) || l.good != nil && !l.good(s)
		})
		if valid = valid[:min(len(valid), maxList)]; len(valid) < len(*l.list) {
			refuse(l.key, fmt.Sprintf("has invalid entries: it may have %d, each one line of at most %d characters",
				maxList, maxEntry))
		}
		*l.list = valid
	}
	valid := slices.DeleteFunc(slices.Clone(c.Review.Scoped), func(s Scoped) bool { return !s.valid() })
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
func (c *Settings) dropUnknownWords(refuse func(key, why string)) {
	drop := func(key string, value *string, why string, words ...string) {
		if *value != "" && !slices.Contains(words, *value) {
			refuse(key, why)
			*value = ""
		}
	}
	drop("review.severity", &c.Review.Severity, "is neither critical, major nor minor", "critical", "major", "minor")
	drop("issues", &c.Issues, "is neither off, ask nor auto", IssuesOff, IssuesAsk, IssuesAuto)
}

// Scoped are instructions for reviews that change some of these files.
type Scoped struct {
	Paths environment.Names `yaml:"paths"` // as in agent.Rule
	Text  string            `yaml:"text"`
}

// Applies reports whether the instructions are about one of these files, or the files are not known (nil).
func (s Scoped) Applies(files []string) bool {
	return files == nil || slices.ContainsFunc(s.Paths, func(p string) bool {
		return slices.ContainsFunc(files, agent.Paths(p).MatchString)
	})
}

// valid reports whether the instructions can be used.
func (s Scoped) valid() bool {
	return len(s.Paths) > 0 && len(s.Paths) <= maxList && !slices.ContainsFunc(s.Paths, badEntry) &&
		strings.TrimSpace(s.Text) != "" && utf8.RuneCountInString(s.Text) <= maxScoped
}

// badEntry reports whether an entry of a list cannot be used.
func badEntry(s string) bool {
	return strings.TrimSpace(s) == "" || utf8.RuneCountInString(s) > maxEntry || strings.ContainsAny(s, "\r\n\x00")
}

// maxScoped is the most characters of the instructions for some paths.
const maxScoped = 2_000
