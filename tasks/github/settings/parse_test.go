package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

func TestParseSettings(t *testing.T) {
	t.Parallel()
	got, wrong := Parse([]byte(`
triggers: {review: false, merge_conflict: true}
skip:
  paths: ["docs/**", "*.lock"]
  labels: [wip]
  authors: [renovate]
  branches: ["release/*"]
review:
  severity: major
  max_findings: 3
  verify: false
  instructions: .github/review.md
  scoped:
    - {paths: ["web/**"], text: Mind the keyboard.}
  unwanted: ['findings like "x"']
checks: [make test]
models: {review: claude-opus-4-8}
`))
	want := Settings{
		Triggers: map[string]bool{"review": false, "merge_conflict": true},
		Skip: skip{
			Paths: []string{"docs/**", "*.lock"}, Labels: []string{"wip"}, Authors: []string{"renovate"},
			Branches: []string{"release/*"},
		},
		Checks: []string{"make test"},
	}
	want.Models = map[string]string{"review": "claude-opus-4-8"}
	want.Review.Scoped, want.Review.Unwanted = []Scoped{{[]string{"web/**"}, "Mind the keyboard."}},
		[]string{`findings like "x"`}
	want.Review.Severity, want.Review.MaxFindings, want.Review.Instructions = "major", 3, ".github/review.md"
	want.Review.Verify = new(bool)
	if diff := cmp.Diff(want, got); diff != "" || wrong != nil {
		t.Errorf("%v\n%s", wrong, diff)
	}
	if got.Enabled("review") || !got.Enabled("check_failure") || got.Enabled("fix") {
		t.Errorf("happens by itself: %v", got.Triggers)
	}
	if empty, wrong := Parse([]byte("# nothing\n")); !cmp.Equal(empty, Settings{}) || wrong != nil ||
		!empty.Enabled("review") {
		t.Errorf("of an empty file: %+v, %v", empty, wrong)
	}
}

// One text stands for a list of it.
func TestOneInsteadOfAList(t *testing.T) {
	t.Parallel()
	got, wrong := Parse([]byte("checks: |\n  make test, vet\nskip: {paths: docs/**}\nsetup: |\n  npm ci\n  npm run build\n" +
		"locks:\npull_requests: {labels: bot}\nreview: {unwanted: style}\n"))
	for name, list := range map[string][]string{
		"make test, vet": got.Checks, "docs/**": got.Skip.Paths, "npm ci\nnpm run build": got.Setup,
		"bot": got.PullRequests.Labels, "style": got.Review.Unwanted,
	} {
		if !slices.Equal(list, []string{name}) {
			t.Errorf("%q is %q", name, list)
		}
	}
	if len(wrong) > 0 || got.Incomplete || got.Locks != nil {
		t.Errorf("%q %+v", wrong, got)
	}
}

// What is meant to switch a list off is no command, and what looks like several names is not taken for one.
func TestNoTextOfAList(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"checks", "setup"} {
		for _, value := range []string{"false", "no", "off", "1", "''", "' '"} {
			got, wrong := Parse([]byte(key + ": " + value))
			want := []string{"Line 1: the value has the wrong type; write a list, such as [a, b]."}
			if !slices.Equal(wrong, want) || got.Checks != nil || got.Setup != nil || got.Incomplete != (key == "checks") {
				t.Errorf("%s: %s: %q, %q, %q", key, value, wrong, got.Checks, got.Setup)
			}
		}
	}
	for _, key := range []string{"pull_requests: {labels: %s}", "skip: {labels: %s}", "path: %s"} {
		if _, wrong := Parse([]byte(strings.Replace(key, "%s", "'bot, ci'", 1))); len(wrong) != 1 ||
			!strings.Contains(wrong[0], "write a list") {
			t.Errorf("%s: %q", key, wrong)
		}
	}
	got, wrong := Parse([]byte("pull_requests: {labels: ['bot, ci']}"))
	if wrong != nil || !slices.Equal(got.PullRequests.Labels, []string{"bot, ci"}) {
		t.Errorf("a label with a comma: %q, %q", wrong, got.PullRequests.Labels)
	}
}

// An invalid setting should be reported and not affect the others.
func TestWrongSettings(t *testing.T) {
	t.Parallel()
	const badEntries = " has invalid entries: it may have 50, each one line of at most 300 characters."
	for _, c := range []struct{ text, want string }{
		{"reviews: {}", "Line 1: unknown setting `reviews`."},
		{"env: {APP: test, HOME: /root}", "env: HOME is set by errand."},
		{"skip: {path: [a]}", "Line 1: unknown setting `path`."},
		{"review:\n  severty: major", "Line 2: unknown setting `severty`."},
		{"checks: {a: b}", "Line 1: the value has the wrong type; write a list, such as [a, b]."},
		{"review: {severity: low}", "`review.severity` is neither critical, major nor minor."},
		{"review: {max_findings: -1}", "`review.max_findings` is not a number from 1 to 20."},
		{
			"review: {instructions: ../../etc/passwd}",
			"`review.instructions` is not the path of a file in the repository.",
		},
		{"review: {instructions: /etc/passwd}", "`review.instructions` is not the path of a file in the repository."},
		{"review: {unwanted: ['']}", "`review.unwanted`" + badEntries},
		{"review: {scoped: [{text: x}]}", "`review.scoped` has invalid entries."},
		{"review: {scoped: [{paths: [a]}]}", "`review.scoped` has invalid entries."},
		{"review: {scoped: [{paths: [''], text: x}]}", "`review.scoped` has invalid entries."},
		{
			"review: {scoped: [{paths: [a], text: " + strings.Repeat("x", 2001) + "}]}",
			"`review.scoped` has invalid entries.",
		},
		{"triggers: {deploy: true}", "`triggers.deploy` is not a kind of automatic work."},
		{"models: {review: --help}", `models: review: "--help" is not a name that the CLI takes.`},
		{"models: {cook: sonnet}", `models: "cook" is not a kind of task.`},
		{"checks: |\n  make\n  make test\n", "`checks`" + badEntries},
		{"skip: {branches: ['[']}", "`skip.branches`" + badEntries},
		{`checks: ["", "make\ntest"]`, "`checks`" + badEntries},
		{"checks: [" + strings.Repeat("x,", 60) + "]", "`checks`" + badEntries},
	} {
		got, wrong := Parse([]byte("triggers: {review: false}\n"))
		if got.Enabled("review") || wrong != nil {
			t.Fatal(wrong)
		}
		got, wrong = Parse([]byte(c.text + "\n"))
		if len(wrong) != 1 || wrong[0] != c.want {
			t.Errorf("%s: %q, want %q", c.text, wrong, c.want)
		}
		if got.Incomplete != strings.HasPrefix(c.text, "checks") {
			t.Errorf("%s: checks are missing: %t", c.text, got.Incomplete)
		}
		got.Checks, got.Triggers, got.Skip, got.Incomplete, got.Declaration = nil, nil, skip{}, false,
			environment.Declaration{}
		if !cmp.Equal(got, Settings{}, cmpopts.EquateEmpty()) {
			t.Errorf("%s: left %+v", c.text, got)
		}
	}
	for kind := range subject.Kinds {
		if _, wrong := Parse([]byte("models: {" + kind + ": opus}\n")); wrong != nil {
			t.Errorf("%s: %q", kind, wrong)
		}
	}
	got, wrong := Parse([]byte("foo: 1\nskip: {labels: [wip]}\nbar: 2\n"))
	if len(wrong) != 2 || !slices.Equal(got.Skip.Labels, []string{"wip"}) {
		t.Errorf("%q %+v", wrong, got)
	}
	if got, wrong := Parse([]byte("a: b: `c`\n")); len(wrong) != 1 ||
		!strings.HasPrefix(wrong[0], "The file is not YAML: ") || !cmp.Equal(got, Settings{Incomplete: true}) {
		t.Errorf("%q %+v", wrong, got)
	}
}

func TestSkips(t *testing.T) {
	t.Parallel()
	c,
		wrong := Parse([]byte(`skip: {paths: ["docs/**", "**/*.lock"], labels: [wip], authors: [Renovate], branches: ["release/*"]}`))
	if wrong != nil {
		t.Fatal(wrong)
	}
	for _, tc := range []struct {
		label, author, base string
		files               []string
		want                string
	}{
		{"", "ann", "main", nil, ""},
		{"", "ann", "main", []string{"docs/a.md", "a.go"}, ""},
		{"", "ann", "main", []string{"docs/a/b.md", "go.lock", "x/go.lock"}, "all files"},
		{"WIP", "ann", "main", nil, "the label WIP"},
		{"", "renovate", "main", nil, "pull requests of renovate"},
		{"", "ann", "release/1", nil, "against release/1"},
		{"", "ann", "release/1/x", nil, ""},
	} {
		pr := &github.PullRequest{User: &github.User{Login: &tc.author}, Base: &github.PullRequestBranch{Ref: &tc.base}}
		if tc.label != "" {
			pr.Labels = []*github.Label{{Name: &tc.label}}
		}
		if got := c.skips(pr, tc.files); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
