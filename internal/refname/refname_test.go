package refname_test

import (
	"os/exec"
	"testing"

	"github.com/errand-fleet/errand/internal/refname"
)

// A name is valid if git accepts it.
func TestValid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"main", "feat/ä-1", "a.b", "v1.0", "dependabot/npm_and_yarn/@x/y", "refs/pull/1/head", "a-/b", "a@b", "lock",
		"-x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "a@{1}",
		"/a", "a/", "a//b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a\x7f", "a\nb",
	} {
		accepted := exec.CommandContext(t.Context(), "git", "check-ref-format", "--branch", name).Run() == nil
		if got := refname.Valid(name); got != accepted {
			t.Errorf("%q is valid: %t, git accepts it: %t", name, got, accepted)
		}
	}
}

func TestBranch(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"": true, "main": true, "release/1.0": true, "refs": true, "a/refs/b": true,
		"refs/heads/main": false, "refs/pull/7/head": false, "refs/": false, "a..b": false, "-f": false,
	} {
		if got := refname.Branch(name); got != want {
			t.Errorf("%q is a branch: %t", name, got)
		}
	}
}
