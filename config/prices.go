package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	patterns "github.com/errand-fleet/errand/internal/pattern"
)

// Price is what a model costs, in US dollars per million tokens.
type Price struct {
	Input     *float64 `yaml:"input" help:"Tokens of the prompt."`
	Output    *float64 `yaml:"output" help:"Tokens of the answer."`
	CacheRead float64  `yaml:"cache_read" default:"a tenth of input" help:"Tokens of the prompt that the cache has."`
}

// The providers of Routing.Prices.
const (
	ProviderAnthropic = "anthropic" // also a gateway that speaks Anthropic's API
	ProviderBedrock   = "bedrock"
	ProviderVertex    = "vertex"
	ProviderFoundry   = "foundry"
	ProviderAny       = "any"
)

var providers = []string{ProviderAnthropic, ProviderBedrock, ProviderVertex, ProviderFoundry, ProviderAny}

// Provider returns the name in Routing.Prices of who offers the model.
func (c Config) Provider() string {
	switch {
	case c.Cloud.Bedrock:
		return ProviderBedrock
	case c.Cloud.Vertex:
		return ProviderVertex
	case c.Cloud.Foundry:
		return ProviderFoundry
	}
	return ProviderAnthropic
}

// maxPrice bounds a Price.
const maxPrice = 1e6

func (v routingCheck) prices(r Routing) {
	for _, provider := range slices.Sorted(maps.Keys(r.Prices)) {
		if !slices.Contains(providers, provider) {
			v.add("is not a provider", "write one of "+strings.Join(providers, ", "), "prices", provider)
		}
		for _, pattern := range slices.Sorted(maps.Keys(r.Prices[provider])) {
			at, p := []string{"prices", provider, pattern}, r.Prices[provider][pattern]
			if !patterns.Check(pattern) {
				v.add("is not a pattern", "write the name of a model, or * for any part of it", at...)
			}
			if p.Input == nil || p.Output == nil { // otherwise the model would be free
				v.add("has no input or no output", "write both, in US dollars per million tokens", at...)
			}
			for key, amount := range map[string]*float64{
				"input": p.Input, "output": p.Output, "cache_read": &p.CacheRead,
			} {
				if usd := *cmp.Or(amount, new(float64)); !(usd >= 0 && usd <= maxPrice) { // also true for .nan
					v.add("is not an amount",
						fmt.Sprintf("write US dollars per million tokens, at most %d", int(maxPrice)),
						append(at, key)...)
				}
			}
		}
	}
}
