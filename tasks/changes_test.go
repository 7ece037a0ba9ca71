package tasks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/workspace"
)

func TestRedactedPatch(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7bq98Gm1\n", 6) +
		"-----END RSA PRIVATE KEY-----\n"
	lines := func(sign, text string) string {
		return sign + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+sign) + "\n"
	}
	const header = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n"
	redact := agent.NewRedactor("hunter2-hunter2", "first line of it\nsecond line of it").String
	for name, c := range map[string]struct{ patch, want string }{
		"nothing":      {header + " a\n-b\n+c\n", header + " a\n-b\n+c\n"},
		"one line":     {header + " a\n-is hunter2-hunter2!\n+c\n", header + " a\n-is [redacted]!\n+c\n"},
		"shape":        {header + "+ghp_0123456789abcdefghij0123456789abcdef\n", header + "+[redacted]\n"},
		"key, added":   {header + " a\n" + lines("+", key) + " b\n", ""},
		"key, removed": {header + " a\n" + lines("-", key) + " b\n", ""},
		"key, context": {header + " a\n" + lines(" ", key) + "+b\n", ""},
		"key, changed": {header + lines("-", key) + lines("+", strings.ReplaceAll(key, "M", "N")), ""},
		"key, no end":  {header + " a\n" + lines("-", strings.Split(key, "-----END")[0]) + "@@ -9 +9 @@\n+shown\n", ""},
		"two lines": {
			header + "-first line of it\n-second line of it\n+c\n", header + "-[redacted]\n-[redacted]\n+c\n",
		},
		"in the name": {
			strings.ReplaceAll(header, "/x", "/hunter2-hunter2"), strings.ReplaceAll(header, "/x", "/[redacted]"),
		},
	} {
		got, changed := redactPatch(c.patch, redact)
		if c.want != "" && got != c.want || strings.Contains(got, "MIIE") || strings.Contains(got, "NIIE") ||
			changed != (got != c.patch) {
			t.Errorf("%s: changed %v:\n%s", name, changed, got)
		}
		// The lines keep their signs, so that the patch can still be read.
		before, after := strings.Split(c.patch, "\n"), strings.Split(got, "\n")
		if len(before) != len(after) {
			t.Fatalf("%s: %d lines became %d:\n%s", name, len(before), len(after), got)
		}
		for i := range before {
			if before[i] != "" && before[i][0] != after[i][0] {
				t.Errorf("%s: line %d was %q, is %q", name, i, before[i], after[i])
			}
		}
		if name == "key, no end" && !strings.HasSuffix(got, "+shown\n") {
			t.Errorf("the next hunk is hidden:\n%s", got)
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	t.Parallel()
	var found workspace.Comparison
	for n := range maxDiffFiles + 5 {
		patch := fmt.Sprintf("diff --git a/%d b/%d\n", n, n) + strings.Repeat("+0123456789\n", n%100*1000)
		found.Files = append(found.Files, workspace.FileChange{
			Name: fmt.Sprint(n), Kind: "M", Added: 2, Removed: 1, Patch: patch,
		})
	}
	found.Left = []string{"huge\xff"}
	c := NewChanges(found, agent.NewRedactor().String)
	size := 0
	for i, f := range c.Files {
		size += len(f.Patch)
		if f.Cut != (len(f.Patch) < len(found.Files[i].Patch)) {
			t.Errorf("%s: cut %v", f.Name, f.Cut)
		}
		if len(f.Patch) > maxFilePatch || f.Patch != "" && !strings.HasSuffix(f.Patch, "\n") {
			t.Errorf("%s: %d bytes, cut %v", f.Name, len(f.Patch), f.Cut)
		}
	}
	want := Diffstat{Files: maxDiffFiles + 6, Added: 2 * (maxDiffFiles + 5), Removed: maxDiffFiles + 5}
	if len(c.Files) != maxDiffFiles || size > maxDiff || size < maxDiff/2 || c.Total != want || c.Missing() != 5 ||
		!c.Files[maxDiffFiles-1].Cut {
		t.Errorf("%d files, %d bytes, %d missing, %v", len(c.Files), size, c.Missing(), c.Total)
	}
	if !strings.HasPrefix(c.Patch(), "# This diff is incomplete") {
		t.Error("the diff does not say that it is incomplete")
	}
}

func TestDiffstat(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]Diffstat{"": {}, "1 file, +0 −2": {1, 0, 2}, "3 files, +40 −12": {3, 40, 12}} {
		if got := d.String(); got != want {
			t.Errorf("%+v: %q", d, got)
		}
	}
}
