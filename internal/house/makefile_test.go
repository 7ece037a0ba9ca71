package house

import (
	"os"
	"regexp"
	"testing"
)

// TestMakefile checks that the commands of the Makefile work in a checkout whose path has a space.
func TestMakefile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^.*[^"']\$\(CURDIR\).*$`).FindAllString(string(text), -1) {
		if line != "export PATH := $(CURDIR)/node_modules/.bin:$(PATH)" {
			t.Errorf("not in quotation marks: %s", line)
		}
	}
}

// TestScripts checks that the scripts pass on names of files that have spaces, such as all in such a checkout.
func TestScripts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`\bxargs.{5}`).FindAllString(string(text), -1) {
		if found != "xargs -d '" {
			t.Errorf("splits names at spaces: %s", found)
		}
	}
}
