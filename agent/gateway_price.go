package agent

import (
	"regexp"
	"strings"
)

// price is the list price of a model in US dollars per million tokens. Writing to the cache costs 1.25 times the input for 5 minutes and
// twice the input for an hour.
type price struct {
	Input, Output, CacheRead float64

	LongAbove int64 // tokens of a prompt beyond which Long applies to the whole call; 0: none
	Long      *price
}

// prices are those that the pinned CLI (2.1.329) reckons with, from the catalog of models in its binary. TestCLIPrices compares each with
// what the CLI says a call has cost.
var prices = map[string]price{
	"claude-3-5-haiku":  {Input: 0.8, Output: 4, CacheRead: 0.08},
	"claude-haiku-4-5":  {Input: 1, Output: 5, CacheRead: 0.1},
	"claude-haiku-5-5":  {Input: 0.1, Output: 0.5, CacheRead: 0.01, LongAbove: 100_000, Long: &price{Input: 0.5, Output: 2.5, CacheRead: 0.05}},
	"claude-3-5-sonnet": {Input: 3, Output: 15, CacheRead: 0.3},
	"claude-3-7-sonnet": {Input: 3, Output: 15, CacheRead: 0.3},
	"claude-sonnet-4-0": {Input: 3, Output: 15, CacheRead: 0.3},
	"claude-sonnet-4-5": {Input: 3, Output: 15, CacheRead: 0.3},
	"claude-sonnet-4-6": {Input: 3, Output: 15, CacheRead: 0.3},
	"claude-sonnet-5":   {Input: 2, Output: 10, CacheRead: 0.2},
	"claude-sonnet-5-5": {Input: 2, Output: 10, CacheRead: 0.1},
	"claude-opus-4-0":   {Input: 15, Output: 75, CacheRead: 1.5},
	"claude-opus-4-1":   {Input: 15, Output: 75, CacheRead: 1.5},
	"claude-opus-4-5":   {Input: 5, Output: 25, CacheRead: 0.5},
	"claude-opus-4-6":   {Input: 5, Output: 25, CacheRead: 0.5},
	"claude-opus-4-7":   {Input: 5, Output: 25, CacheRead: 0.5},
	"claude-opus-4-8":   {Input: 5, Output: 25, CacheRead: 0.5},
	"claude-opus-5":     {Input: 5, Output: 25, CacheRead: 0.5},
	"claude-opus-5-5":   {Input: 4, Output: 20, CacheRead: 0.2},
	"claude-fable-5":    {Input: 10, Output: 50, CacheRead: 1},
	"claude-fable-5-1":  {Input: 10, Output: 50, CacheRead: 0.25},
	"claude-fable-5-2":  {Input: 8, Output: 40, CacheRead: 0.2},
	"claude-mythos-5":   {Input: 10, Output: 50, CacheRead: 1},
	"claude-mythos-5-1": {Input: 10, Output: 50, CacheRead: 0.25},
	"claude-mythos-5-2": {Input: 8, Output: 40, CacheRead: 0.2},
}

const (
	perSearch = 0.01 // US dollars of one web search by the model's own tool
	usFactor  = 1.1  // of tokens that are kept in the United States
)

// dearest is the price of a model that is not known: the highest of each.
var dearest = func() (d price) {
	for _, p := range prices {
		d.Input, d.Output, d.CacheRead = max(d.Input, p.Input), max(d.Output, p.Output), max(d.CacheRead, p.CacheRead)
	}
	return d
}()

// spelled finds a model's ID in its name as providers write it: with a region and a vendor before it, with a date, a version or a size of
// context behind it.
var spelled = regexp.MustCompile(`^(?:.*[./])?(claude-(?:[a-z]+-\d(?:-\d)?|\d-\d-[a-z]+))(?:[-@](?:20\d{6}|latest))?(?:-v\d+(?::\d+)?)?$`)

// modelID is the ID by which prices knows a model; else its name as it was.
func modelID(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), "[1m]")
	m := spelled.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	if _, known := prices[m[1]]; !known {
		if _, known := prices[m[1]+"-0"]; known { // claude-opus-4-20250514
			return m[1] + "-0"
		}
	}
	return m[1]
}

// priceOf is the price of the first of the names that is known; else the dearest.
func priceOf(names ...string) (p price, known bool) {
	for _, name := range names {
		if p, ok := prices[modelID(name)]; ok {
			return p, true
		}
	}
	return dearest, false
}

// bill is what one call has used up, in the API's own words.
type bill struct {
	Usage
	Cache struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"` // of Usage.CacheCreation
	} `json:"cache_creation"`
	Server struct {
		Searches int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Geo string `json:"inference_geo"`
}

// most is the greater of each: an API says of a call what it has used so far, each time.
func (b bill) most(c bill) bill {
	b.Usage = b.Usage.most(c.Usage)
	b.Cache.Hour, b.Server.Searches = max(b.Cache.Hour, c.Cache.Hour), max(b.Server.Searches, c.Server.Searches)
	if c.Geo != "" {
		b.Geo = c.Geo
	}
	return b
}

// cost is what a call costs in US dollars.
func (p price) cost(b bill) float64 {
	if p.Long != nil && b.Input+b.CacheRead+b.CacheCreation > p.LongAbove {
		p = *p.Long
	}
	hour := min(b.Cache.Hour, b.CacheCreation)
	usd := float64(b.Input)*p.Input + float64(b.Output)*p.Output + float64(b.CacheRead)*p.CacheRead +
		float64(hour)*2*p.Input + float64(b.CacheCreation-hour)*1.25*p.Input
	if b.Geo == "us" {
		usd *= usFactor
	}
	return usd/1e6 + float64(b.Server.Searches)*perSearch
}
