package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// .dockerignore keeps everything out that it does not name: a new package must be named, and .env never.
func TestImageContext(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		named[strings.TrimSpace(line)] = true
	}
	if !named["*"] {
		t.Error("what is not named gets into the image")
	}
	for _, name := range []string{".env", ".git", "node_modules", "e2e"} {
		if named["!"+name] {
			t.Errorf("%s gets into the image", name)
		}
	}
	for _, dir := range packages(t) {
		if !named["!"+dir] {
			t.Errorf("%s has Go code and is not in .dockerignore: the image would be built without it", dir)
		}
	}
}

// packages lists the top-level folders with code of the main module.
func packages(t *testing.T) []string {
	t.Helper()
	modules, err := filepath.Glob("../*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, file := range modules {
		own[filepath.Base(filepath.Dir(file))] = true
	}
	var found []string
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			dir := strings.Split(filepath.ToSlash(file), "/")[1]
			if !own[dir] && dir != "node_modules" && !strings.HasPrefix(dir, ".") && !strings.HasSuffix(file, "_test.go") {
				own[dir] = true
				found = append(found, dir)
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("no package found")
	}
	return found
}
