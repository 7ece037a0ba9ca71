package findings

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "update the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

var (
	exact = Finding{
		ID: "overflow", Severity: Critical, Path: "pay/total (new).go", StartLine: 10, Line: 12, Side: Right,
		Claim: "The total overflows.", Evidence: "`int32` ends at 2,147,483,647 cents.", Original: "x",
		Suggestion: "total := int64(0)\n// ```", Exact: true,
	}
	vague = Finding{
		ID: "doc", Severity: Minor, Path: "README.md", Line: 3, Side: Right, Claim: "The text is out of date.",
		Suggestion: "Say int64.",
	}
	gone = Finding{
		ID: "check", Severity: Major, Path: "pay/check.go", Line: 7, Side: Left, Claim: "The check is gone.",
		Evidence: "Nothing else checks it.",
	}
	general = Finding{ID: "tests", Severity: Minor, Claim: "Nothing of this is tested."}
	odd     = Finding{ID: "odd", Severity: Minor, Path: "a`b``.go", Claim: "An odd name."}
	page    = Page{
		Repo: "https://github.com/acme/api", Pull: "https://github.com/acme/api/pull/7",
		Head: "0123456789abcdef0123456789abcdef01234567",
	}
)

func TestBodies(t *testing.T) {
	t.Parallel()
	old := Known{Finding: gone, Status: Open, Comment: 41}
	fixed := Known{Finding: vague, Status: Fixed, Comment: 42}
	full := Plan{
		Inline: []Finding{exact}, Summary: []Finding{gone, vague, general, odd}, StillOpen: []Known{old},
		Fixed: []Known{fixed}, Below: 2,
	}
	quiet := Plan{StillOpen: []Known{old}, Fixed: []Known{{Finding: general, Status: Fixed}}}
	golden(t, "comment.suggestion", Comment(exact))
	golden(t, "comment.advice", Comment(vague))
	golden(t, "review.intro", full.Intro(page))
	golden(t, "review.whole", Plan{Inline: []Finding{exact, vague}}.Whole(page))
	golden(t, "summary.full", full.Text("It does what it says, but for large totals.", page))
	golden(t, "summary.quiet", quiet.Text("Only the text has changed.", page))
	golden(t, "summary.nothing", Plan{}.Text("Nothing to report.", page))
	golden(t, "lines", full.Lines(page))
	fork := page
	fork.Fork = true
	if next := quiet.Text("", fork); !strings.Contains(next, "**Next:** push fixes. ") ||
		strings.Contains(next, "/fix") {
		t.Errorf("nothing can be pushed to a fork: %q", next)
	}
	for want, p := range map[string]Plan{
		"5 new findings, 1 still open, 1 fixed": full, "nothing new, 1 still open, 1 fixed": quiet, "no findings": {},
		"1 new finding": {Summary: []Finding{general}},
	} {
		if got := p.Headline(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFindingOf(t *testing.T) {
	t.Parallel()
	if id, ok := FindingOf(Comment(exact)); id != "overflow" || !ok {
		t.Errorf("%q, %t", id, ok)
	}
	whole := Plan{Inline: []Finding{exact, vague}}.Whole(page)
	if diff := cmp.Diff([]string{"overflow", "doc"}, FindingsIn(whole)); diff != "" {
		t.Error(diff)
	}
	for _, body := range []string{
		"", "x", " " + Comment(exact), strings.Replace(Comment(exact), "overflow", "a b", 1),
	} {
		if id, ok := FindingOf(body); ok {
			t.Errorf("%q is that of %q", body, id)
		}
	}
}

// A block of code that the agent has not closed, or that was cut, ends with its finding: the text below is another
// item of the list.
func TestFindingsEndWithThemselves(t *testing.T) {
	t.Parallel()
	open := general
	open.Evidence = "- so:\n\n  ```go\n  x\n\n ~~~\ny"
	for what, text := range map[string]string{
		"summary": Plan{Summary: []Finding{open, gone}}.Text("Two.", page),
		"review":  Plan{Inline: []Finding{open, gone}}.Whole(page),
	} {
		_, text, _ = strings.Cut(text, "- 🟡 **minor**: Nothing of this is tested.\n")
		mine, next, ok := strings.Cut(text, "\n- 🟠 **major** `pay/check.go:7`")
		if !ok || !strings.Contains(next, "\n  Nothing else checks it.") {
			t.Errorf("%s: %q", what, text)
		}
		mine, _, _ = strings.Cut(mine, "<!-- errand:finding=")
		for l := range strings.Lines(mine) {
			if l != "\n" && !strings.HasPrefix(l, "  ") {
				t.Errorf("%s: %q leaves the item", what, l)
			}
		}
	}
}
