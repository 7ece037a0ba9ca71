package tasks

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
)

func TestMarkdownIsBounded(t *testing.T) {
	t.Parallel()
	c := &Verification{}
	for range 50 {
		c.Ran = append(c.Ran, Verified{
			Command: "make test", Outcome: agent.Failed, ExitCode: 1, Said: strings.Repeat("x", 2000),
		})
	}
	if text := c.Markdown(); len(text) > maxVerification+1500 || !strings.Contains(text, "The rest is left out.") ||
		!strings.HasPrefix(text, "**50 of 50 checks failed") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
}
