package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var embedded = regexp.MustCompile(`(?m)^//go:embed (.+)$`)

// The Go files of the top folder, and what they take along, are named in .dockerignore as well.
func TestImageContextHasTheExamples(t *testing.T) {
	t.Parallel()
	ignored, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("there are none", err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{filepath.Base(file)}
		for _, m := range embedded.FindAllStringSubmatch(string(code), -1) {
			names = append(names, m[1])
		}
		for _, name := range names {
			if !strings.Contains(string(ignored), "\n!"+name+"\n") {
				t.Errorf("%s is not in .dockerignore: the image cannot be built without it", name)
			}
		}
	}
}
