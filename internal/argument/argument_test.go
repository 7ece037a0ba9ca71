package argument

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{
		"opus": true, "claude-opus-5-5[1m]": true, "eu.anthropic.claude-x-v1:0": true, "claude@20260101": true,
		"": false, "-p": false, "--effort=max": false, "two words": false, "a\nb": false, "opus\x00": false, "é": false,
		strings.Repeat("x", 200): true, strings.Repeat("x", 201): false,
	} {
		if Valid(word) != want {
			t.Errorf("%q: want %t", word, want)
		}
	}
}
