package github

import (
	"testing"

	"github.com/errand-fleet/errand/internal/markdown"
)

// An agent's words in a description close no issue when somebody merges.
func TestUnclosing(t *testing.T) {
	t.Parallel()
	const z = "\u200b"
	for in, want := range map[string]string{
		"Fixes acme/x#3.":              "Fixes" + z + " acme/x#" + z + "3.",
		"fix: #3, CLOSED #4":           "fix" + z + ": #" + z + "3, CLOSED" + z + " #" + z + "4",
		"Resolves\n> GH-3":             "Resolves" + z + "\n> GH-3",
		"**Closes** https://a/b#3":     "**Closes" + z + "** https://a/b#3",
		"closes &#35;3":                "closes" + z + " &#35;3",
		"It fixes what #3 says.":       "It fixes what #3 says.",
		"prefix #3\n\nFixed.\n\n# Why": "prefix #3\n\nFixed.\n\n# Why",
		"```\nFixes #3\n```":           "```\nFixes #3\n```",
	} {
		if got := markdown.Prose(in, unclosing); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
