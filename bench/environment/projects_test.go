package main

import (
	"os"
	"testing"
)

// The document has an example for each project, which the smoke run leaves out.
func TestExamples(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/repository.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"Go", "Python", "Node.js", "Java"} {
		if text, err := example(string(document), language); err != nil || text == "" {
			t.Errorf("%q, %v", text, err)
		}
	}
}
