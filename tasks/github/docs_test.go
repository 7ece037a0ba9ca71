package github

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/errand-fleet/errand/tasks/github/settings"
)

// The blocks of .github/errand.yml in the documents are valid.
func TestDocsSettings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	valid := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?ms)^```yaml\n((?:setup|triggers):.*?)^```$").FindAllSubmatch(text, -1) {
			if _, wrong := settings.Parse(m[1]); len(wrong) > 0 {
				t.Errorf("%s: %q\n%s", file, wrong, m[1])
			}
			valid++
		}
	}
	if valid < 6 {
		t.Errorf("found %d", valid)
	}
}
