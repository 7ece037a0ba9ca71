package review

import (
	"os/exec"
	"strings"
	"testing"
)

// Two diffs of the same change have the same ID wherever it is made, as git itself has it; any other change has
// another one.
func TestPatchID(t *testing.T) {
	t.Parallel()
	const diff = "diff --git a/f b/f\nindex 1234567..89abcde 100644\n--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@ func a() {\n x\n+y\n z\n"
	moved := strings.NewReplacer("1234567..89abcde", "fedcba9..7654321", "-1,3 +1,4 @@ func a() {", "-11,3 +11,4 @@ func b() {").Replace(diff)
	other := strings.Replace(diff, "+y", "+index y", 1)
	if patchID(diff) != patchID(moved) || patchID(diff) == patchID(other) ||
		patchID(diff) == patchID(strings.Replace(diff, "+y", "+ y", 1)) {
		t.Error("the wrong ones are the same")
	}
	const picture = "diff --git a/p b/p\nindex 1234567..89abcde 100644\nBinary files a/p and b/p differ\n"
	if patchID(picture) == patchID(strings.Replace(picture, "89abcde", "7654321", 1)) {
		t.Error("another picture is the same")
	}
	ids := func(diff string) string {
		cmd := exec.CommandContext(t.Context(), "git", "patch-id", "--stable")
		cmd.Stdin = strings.NewReader(diff)
		out, err := cmd.Output()
		if err != nil {
			t.Error(err)
		}
		id, _, _ := strings.Cut(string(out), " ")
		return id
	}
	if ids(diff) != ids(moved) || ids(diff) == ids(other) {
		t.Error("git thinks otherwise")
	}
}
