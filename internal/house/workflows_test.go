package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pinned has the whole ID of a commit, because a tag can be moved, and the version in words.
var pinned = regexp.MustCompile(`^- uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// Workflows run actions as they were when somebody looked at them.
func TestWorkflowsPinActions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows, %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.Contains(line, "uses:") && !pinned.MatchString(line) {
				t.Errorf("%s: %s", filepath.Base(file), line)
			}
		}
	}
}
