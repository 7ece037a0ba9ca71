package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pricesYAML = `prices:
  bedrock:
    eu.*: {input: 5.5, output: 27.5, cache_read: 0.3}
    EU.anthropic.claude-opus*: {input: 6, output: 30, cache_write: 7, cache_write_1h: 11}
  any:
    glm-*: {input: 1, output: 2}
`

func TestPrices(t *testing.T) {
	t.Parallel()
	var p Problems
	r := parseRouting(&p, "f", []byte(pricesYAML))
	if len(p) > 0 {
		t.Fatal(p)
	}
	glm := PricedModel{"glm-*", Price{Input: new(1.0), Output: new(2.0), CacheRead: 0.1}}
	want := []PricedModel{
		{"eu.anthropic.claude-opus*", Price{Input: new(6.0), Output: new(30.0), CacheWrite: 7, CacheWriteHour: 11, CacheRead: 0.6}},
		{"eu.*", Price{Input: new(5.5), Output: new(27.5), CacheRead: 0.3}},
		glm,
	}
	if diff := cmp.Diff(want, r.PricesOf(ProviderBedrock)); diff != "" {
		t.Errorf("prices of Bedrock (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]PricedModel{glm}, r.PricesOf(Config{}.Provider())); diff != "" {
		t.Errorf("prices of Anthropic (-want +got):\n%s", diff)
	}
}

// A model may be free if both prices say so.
func TestFreeModel(t *testing.T) {
	t.Parallel()
	var p Problems
	r := parseRouting(&p, "f", []byte("prices: {any: {a: {input: 0, output: 0}}}"))
	if list := r.PricesOf(ProviderVertex); len(p) > 0 || len(list) != 1 {
		t.Errorf("%v, prices %+v", p, list)
	}
}

func TestPriceProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{"aws: {a: {input: 1, output: 1}}", "f:1: prices.aws is not a provider; write one of anthropic, bedrock, vertex, foundry, any"},
		{"any: {'[': {input: 1, output: 1}}", "f:1: prices.any.[ is not a pattern; write the name of a model, or * for any part of it"},
		{"any: {a: {input: 0, output: -1}}", "f:1: prices.any.a.output is not an amount; write US dollars per million tokens, at most 1000000"},
		{"any: {a: {input: .nan, output: 1}}", "f:1: prices.any.a.input is not an amount; write US dollars per million tokens, at most 1000000"},
		{"any: {a: {output: 1, cache_read: 1}}", "f:1: prices.any.a has no input or no output; write both, in US dollars per million tokens"},
		{"any: {a: {input: 1}}", "f:1: prices.any.a has no input or no output; write both, in US dollars per million tokens"},
		{"any: {a: {in: 1}}", `f:1: knows no key "in"; remove it or correct its spelling; the keys here are input, output, cache_write, cache_write_1h, cache_read`},
	} {
		var p Problems
		parseRouting(&p, "f", []byte("prices: {"+tc.text+"}"))
		if len(p) != 1 || p[0].String() != tc.want {
			got := p
			t.Errorf("%s:\ngot  %v\nwant %s", tc.text, got, tc.want)
		}
	}
}
