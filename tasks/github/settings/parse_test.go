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

// One text stands for a list of it. A word for off does not, nor does nothing.
func TestOneInsteadOfAList(t *testing.T) {
	t.Parallel()
	got, wrong := Parse([]byte("checks: |\n  make test\nskip: {paths: docs/**}\nsetup: |\n  npm ci\n  npm run build\n" +
		"locks:\npull_requests: {labels: bot}\nreview: {unwanted: style}\n"))
	for name, list := range map[string]environment.Lines{
		"make test": got.Checks, "docs/**": got.Skip.Paths, "npm ci\nnpm run build": got.Setup, "bot": got.PullRequests.Labels,
		"style": got.Review.Unwanted,
	} {
		if !slices.Equal(list, []string{name}) {
			t.Errorf("%q is %q", name, list)
		}
	}
	if len(wrong) > 0 || got.Incomplete || got.Locks != nil {
		t.Errorf("%q %+v", wrong, got)
	}

	for _, off := range []string{"false", "no", "off", `""`, "' '"} {
		got, wrong := Parse([]byte("checks: " + off + "\nsetup: " + off + "\n"))
		want := []string{"Line 1: the value has the wrong type.", "Line 2: the value has the wrong type."}
		if !slices.Equal(wrong, want) || len(got.Checks)+len(got.Setup) > 0 {
			t.Errorf("%s is %q %q; said %q", off, got.Checks, got.Setup, wrong)
		}
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
		{"checks: {a: b}", "Line 1: the value has the wrong type."},
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
