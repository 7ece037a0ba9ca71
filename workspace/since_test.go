package workspace

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// topic checks out the pull request's current head.
func topic(t *testing.T, w *Workspace) Clone {
	t.Helper()
	return checkout(t, w, Want{Thread: "t", Repo: "acme/api", Ref: "topic", Base: "main"})
}

func TestSincePushes(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.commit("topic", map[string]string{"a.txt": "one\n", ":(top)b.txt": "x\n"})
	o.commit("topic", map[string]string{"a.txt": "one\ntwo\n", ":(top)b.txt": "y\n", ".gitattributes": "* -diff\n"})
	// Changes from a merge of the base are not part of this change.
	o.commit("main", map[string]string{"base.txt": "not of this branch\n"})
	testGit(t, o.work, "checkout", "--quiet", "topic")
	testGit(t, o.work, "merge", "--quiet", "--no-edit", "main")
	o.push("HEAD:refs/heads/topic")
	w := o.files()
	c := topic(t, w)

	s, err := w.Since(t.Context(), c, first, 1<<20)
	if err != nil || s.Rewritten || s.Truncated {
		t.Fatalf("%+v, %v", s, err)
	}
	if !strings.Contains(s.Text, "+two") || !strings.Contains(s.Text, "\n+y\n") ||
		strings.Contains(s.Text, "base.txt") || strings.Contains(s.Text, "+one") {
		t.Errorf("patch:\n%s", s.Text)
	}
	cut, err := w.Since(t.Context(), c, first, len(s.Text)-1)
	if err != nil || !cut.Truncated || !strings.HasPrefix(s.Text, cut.Text) || !strings.HasSuffix(cut.Text, "\n") {
		t.Errorf("one byte too long: %+v, %v", cut, err)
	}
	if s, err := w.Since(t.Context(), c, c.Head, 1<<20); err != nil || s.Text != "" {
		t.Errorf("since itself: %+v, %v", s, err)
	}
}

func TestSinceRewrite(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	start := testGit(t, o.work, "rev-parse", "HEAD")
	rest := strings.Repeat("a line\n", 20)
	first := o.commit("topic", map[string]string{"a.txt": "one\n" + rest})
	o.commit("main", map[string]string{"base.txt": "not of this branch\n"})
	testGit(t, o.work, "branch", "--quiet", "--force", "topic", "main")
	o.commit("topic", map[string]string{"a.txt": "ONE\n" + rest})
	w := o.files()
	c := topic(t, w) // the host has no ref for the first head any more, but still serves it by its SHA
	testGit(t, o.bare, "config", "uploadpack.allowAnySHA1InWant", "true")

	s, err := w.Since(t.Context(), c, first, 1<<20)
	if err != nil || !s.Rewritten {
		t.Fatalf("%+v, %v", s, err)
	}
	if !strings.HasPrefix(s.Text, "1: ") || !strings.Contains(s.Text, "\n    ++ONE\n") ||
		!strings.Contains(s.Text, "\n-one\n+ONE\n") || strings.Contains(s.Text, "base.txt") {
		t.Errorf("range-diff:\n%s", s.Text)
	}

	// With too many commits to compare, the result is a patch of the change's files.
	testGit(t, o.work, "checkout", "--quiet", "-B", "topic", start)
	for n := range maxSinceCommits {
		testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", fmt.Sprint(n))
	}
	o.commit("topic", map[string]string{"a.txt": "many\n"})
	s, err = w.Since(t.Context(), topic(t, w), first, 1<<20)
	if err != nil || !s.Rewritten || !strings.HasPrefix(s.Text, "diff --git a/a.txt") ||
		!strings.Contains(s.Text, "-one\n") || strings.Contains(s.Text, "base.txt") {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSinceRefuses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("topic", map[string]string{"a.txt": "one\n"})
	w := o.files()
	c := topic(t, w)
	if _, err := w.Since(t.Context(), c, strings.Repeat("ab", 20), 100); !errors.Is(err, ErrRef) {
		t.Error("an unknown head:", err)
	}
	for _, earlier := range []string{"", "--output=x", "main"} {
		if _, err := w.Since(t.Context(), c, earlier, 100); err == nil || !strings.HasPrefix(err.Error(), "compare ") {
			t.Errorf("%q: %v", earlier, err)
		}
	}
}
