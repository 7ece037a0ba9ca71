package config

import "testing"

func TestPriceProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{
			"aws: {a: {input: 1, output: 1}}",
			"f:1: prices.aws is not a provider; write one of anthropic, bedrock, vertex, foundry, any",
		},
		{
			"any: {'[': {input: 1, output: 1}}",
			"f:1: prices.any.[ is not a pattern; write the name of a model, or * for any part of it",
		},
		{
			"any: {a: {input: 0, output: -1}}",
			"f:1: prices.any.a.output is not an amount; write US dollars per million tokens, at most 1000000",
		},
		{
			"any: {a: {input: .nan, output: 1}}",
			"f:1: prices.any.a.input is not an amount; write US dollars per million tokens, at most 1000000",
		},
		{
			"any: {a: {output: 1, cache_read: 1}}",
			"f:1: prices.any.a has no input or no output; write both, in US dollars per million tokens",
		},
		{
			"any: {a: {input: 1}}",
			"f:1: prices.any.a has no input or no output; write both, in US dollars per million tokens",
		},
		{
			"any: {a: {in: 1}}",
			`f:1: knows no key "in"; remove it or correct its spelling; the keys here are input, output, cache_read`,
		},
	} {
		var p Problems
		parseRouting(&p, "f", []byte("prices: {"+tc.text+"}"))
		if len(p) != 1 || p[0].String() != tc.want {
			got := p
			t.Errorf("%s:\ngot  %v\nwant %s", tc.text, got, tc.want)
		}
	}
}
