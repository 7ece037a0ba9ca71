package store

import (
	"strings"
	"testing"
)

// A second definition of a name in common.lua would silently replace the first one in every script that uses either.
func TestCommonDefinesEachNameOnce(t *testing.T) {
	t.Parallel()
	common, err := scriptFiles.ReadFile("scripts/common.lua")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, piece := range strings.Split(string(common), "\nlocal ")[1:] {
		for name := range strings.SplitSeq(defined.FindStringSubmatch("local " + piece)[1], ", ") {
			if seen[name] {
				t.Errorf("common.lua defines %s twice", name)
			}
			seen[name] = true
		}
	}
}
