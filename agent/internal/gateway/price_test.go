package gateway

import "testing"

// A model should have the price of its ID in every provider's spelling; an unknown one the highest price.
func TestPriceOf(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"claude-opus-5-5": "claude-opus-5-5", "claude-opus-5-5[1m]": "claude-opus-5-5", "Claude-Opus-5": "claude-opus-5",
		"claude-haiku-4-5-20251001": "claude-haiku-4-5", "claude-opus-4-20250514": "claude-opus-4-0", "claude-3-5-haiku-20241022": "claude-3-5-haiku",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5", "anthropic/claude-sonnet-5-5": "claude-sonnet-5-5",
		"claude-haiku-4-5@20251001": "claude-haiku-4-5", "claude-3-5-haiku-latest": "claude-3-5-haiku",
	} {
		if p, known := PriceOf(name); !known || p != Prices[id] {
			t.Errorf("%s costs %+v", name, p)
		}
	}
	for _, name := range []string{"", "glm-4", "claude-opus-5-7", "claude-opus-9", "claude-opus-5-5-turbo", "not-claude-haiku-5-5"} {
		if p, known := PriceOf(name); known || p.Input != 15 || p.Output != 75 || p.CacheRead != 1.5 {
			t.Errorf("%s costs %+v, %v", name, p, known)
		}
	}
	if p, known := PriceOf("glm-4", "claude-sonnet-5"); !known || p != Prices["claude-sonnet-5"] {
		t.Errorf("the second name: %+v", p)
	}
}
