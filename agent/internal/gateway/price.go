package gateway

import (
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/pattern"
)

// Price is the price of a model in US dollars per million tokens. Writing to the cache costs 1.25 times the input for
// 5 minutes and twice the input for an hour.
type Price struct {
	Input, Output, CacheRead float64

	LongAbove int64 // a call with more prompt tokens costs Long throughout; 0: no such limit
	Long      *Price
}

// Prices are the list prices of the pinned CLI (2.1.332), from the model catalog in its binary. TestCLIPrices compares
// each with the cost that the CLI reports.
var Prices = map[string]Price{
	"claude-3-5-haiku": {Input: 0.8, Output: 4, CacheRead: 0.08},
	"claude-haiku-4-5": {Input: 1, Output: 5, CacheRead: 0.1},
	"claude-haiku-5-5": {
		Input: 0.1, Output: 0.5, CacheRead: 0.01, LongAbove: 100_000,
		Long: &Price{Input: 0.5, Output: 2.5, CacheRead: 0.05},
	},
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
	perSearch = 0.01 // US dollars per web search by the model's own tool
	usFactor  = 1.1  // price factor for inference in the United States
)

// highestPrice is the price of unknown models: the maximum of each kind of token.
var highestPrice = func() (d Price) {
	for _, p := range Prices {
		d.Input, d.Output, d.CacheRead = max(d.Input, p.Input), max(d.Output, p.Output), max(d.CacheRead, p.CacheRead)
	}
	return d
}()

// modelName finds a model's ID in the name that a provider uses: with a region and a vendor before the ID, and a date
// or a version after it.
var modelName = regexp.MustCompile(`^(?:.*[./])?(claude-(?:[a-z]+-\d(?:-\d)?|\d-\d-[a-z]+))(?:[-@](?:20\d{6}|latest))?(?:-v\d+(?::\d+)?)?$`)

// ModelID returns the key of a model in Prices, or its name in lower case if it has none.
func ModelID(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), "[1m]")
	m := modelName.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	if _, known := Prices[m[1]]; !known {
		if _, known := Prices[m[1]+"-0"]; known { // claude-opus-4-20250514
			return m[1] + "-0"
		}
	}
	return m[1]
}

// ModelPrice is what an operator says that models cost.
type ModelPrice struct {
	Pattern string // of pattern.MatchText, for a provider's name of the models or their ID
	Price
}

// PriceList comes before the list prices. Its first entry that matches counts.
type PriceList []ModelPrice

// Of returns the price of the first of the names that is known, otherwise the highest list price.
func (l PriceList) Of(names ...string) (p Price, known bool) {
	for _, name := range names {
		if i := slices.IndexFunc(l, func(own ModelPrice) bool { return own.matches(name) }); i >= 0 {
			return l[i].Price, true
		}
	}
	for _, name := range names {
		if p, ok := Prices[ModelID(name)]; ok {
			return p, true
		}
	}
	return highestPrice, false
}

func (m ModelPrice) matches(name string) bool {
	for _, form := range []string{strings.ToLower(name), ModelID(name)} {
		if form != "" && pattern.MatchText(m.Pattern, form) {
			return true
		}
	}
	return false
}

// Bill is the usage of one call, in the fields of the API.
type Bill struct {
	Usage
	Cache struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"` // of Usage.CacheCreation
	} `json:"cache_creation"`
	Server struct {
		Searches int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Geo string `json:"inference_geo"`
}

// most returns the maximum of each field: the API reports the sum so far each time.
func (b Bill) most(c Bill) Bill {
	u, v := b.Usage, c.Usage
	b.Usage = Usage{
		max(u.Input, v.Input), max(u.Output, v.Output), max(u.CacheRead, v.CacheRead),
		max(u.CacheCreation, v.CacheCreation),
	}
	b.Cache.Hour, b.Server.Searches = max(b.Cache.Hour, c.Cache.Hour), max(b.Server.Searches, c.Server.Searches)
	if c.Geo != "" {
		b.Geo = c.Geo
	}
	return b
}

// Cost returns the cost of a call in US dollars.
func (p Price) Cost(b Bill) float64 {
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

// cliModels are the models that the pinned CLI (2.1.332) asks by itself: its default with a key and with a login, the
// small one for fetched pages, and those behind the names that a sub-agent may be given (TestCLIModelsAndBetas).
var cliModels = []string{"claude-opus-5-5", "claude-sonnet-5-5", SmallModel, "claude-fable-5-2"}

// SmallModel is the CLI's model for small jobs, which every run needs.
const SmallModel = "claude-haiku-5-5"

// families are names by which the CLI chooses a model of a kind. A model may be replaced by another one of its family:
// the CLI replaces retired models.
var families = []string{"haiku", "sonnet", "opus", "fable", "mythos"}

// cliChoice are names that leave the choice to the CLI.
var cliChoice = []string{"default", "best", "opusplan"}

// models returns the models that a run may ask: its own (empty: none), and those that an operator allows (none: any
// that the CLI offers).
func (k *key) models(own string, allowed []string) []string {
	list := append([]string{SmallModel}, allowed...)
	if own != "" {
		list = append(list, own)
	}
	if k.Cloud != nil { // the CLI asks for other versions there, which depend on the region
		list = append(list, "haiku")
	}
	if len(allowed) == 0 || slices.ContainsFunc(list, func(name string) bool {
		return slices.Contains(cliChoice, name)
	}) {
		list = append(list, cliModels...)
		if k.Cloud != nil {
			list = append(list, families...)
		}
	}
	for kind, name := range k.Names { // which need not show the family
		if kind == "haiku" || len(allowed) == 0 || slices.ContainsFunc(list, func(allowed string) bool {
			return family(allowed) == kind
		}) {
			list = append(list, name)
		}
	}
	return list
}

// StartModel returns the model that a run starts with: its own if it names one, or the first allowed model if the
// operator does not allow the CLI's default. Empty means the CLI's default.
func (u *Upstream) StartModel(own string) string {
	refused := func(k *key) bool { // the CLI's default
		cliDefault := "claude-opus-5-5"
		if k.APIKey == "" && k.OAuthToken != "" {
			cliDefault = "claude-sonnet-5-5"
		}
		return k.Cloud != nil || !among(k.models("", u.cfg.Models), cliDefault)
	}
	if own != "" || len(u.cfg.Models) == 0 || !slices.ContainsFunc(u.keys.keys, refused) {
		return own
	}
	return u.cfg.Models[0]
}

// Allow lets the run ask a further model, by a name that the CLI accepts.
func (g *Gateway) Allow(name string) {
	if g == nil {
		return
	}
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	g.models = append(g.models, g.lease.key.models(name, []string{name})...)
}

// allows reports whether a call may ask a model.
func (g *Gateway) allows(name string) bool {
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	return among(g.models, name)
}

// among reports whether a list that models returned includes a model.
func among(list []string, name string) bool {
	if strings.HasPrefix(strings.ToLower(name), "arn:") { // it may name another account
		return slices.ContainsFunc(list, func(allowed string) bool { return strings.EqualFold(allowed, name) })
	}
	name = ModelID(name)
	kind := family(name)
	return slices.ContainsFunc(list, func(allowed string) bool {
		return ModelID(allowed) == name || kind != "" && family(allowed) == kind && !slices.Contains(cliModels, allowed)
	})
}

// family returns the family of a model, or the family that the name itself is; empty: none.
func family(name string) string {
	name = ModelID(name)
	for _, f := range families {
		if name == f || strings.HasPrefix(name, "claude-") && slices.Contains(strings.Split(name, "-"), f) {
			return f
		}
	}
	return ""
}
