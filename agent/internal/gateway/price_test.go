package gateway

import (
	"io"
	"net/http"
	"testing"
)

// A model should have the price of its ID in every provider's spelling; an unknown one the highest price.
func TestPriceOf(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"claude-opus-5-5": "claude-opus-5-5", "claude-opus-5-5[1m]": "claude-opus-5-5",
		"Claude-Opus-5": "claude-opus-5", "claude-haiku-4-5-20251001": "claude-haiku-4-5",
		"claude-opus-4-20250514": "claude-opus-4-0", "claude-3-5-haiku-20241022": "claude-3-5-haiku",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0": "claude-haiku-4-5",
		"anthropic/claude-sonnet-5-5":                 "claude-sonnet-5-5",
		"claude-haiku-4-5@20251001":                   "claude-haiku-4-5",
		"claude-3-5-haiku-latest":                     "claude-3-5-haiku",
	} {
		if p, known := PriceList(nil).Of(name); !known || p != Prices[id] {
			t.Errorf("%s costs %+v", name, p)
		}
	}
	for _, name := range []string{
		"", "glm-4", "claude-opus-5-7", "claude-opus-9", "claude-opus-5-5-turbo", "not-claude-haiku-5-5",
	} {
		if p, known := PriceList(nil).Of(name); known || p.Input != 15 || p.Output != 75 || p.CacheRead != 1.5 {
			t.Errorf("%s costs %+v, %v", name, p, known)
		}
	}
	if p, known := PriceList(nil).Of("glm-4", "claude-sonnet-5"); !known || p != Prices["claude-sonnet-5"] {
		t.Errorf("the second name: %+v", p)
	}
}

// An operator's prices come before the list prices: the bill of a run and its maximum are by them.
func TestOwnPrices(t *testing.T) {
	t.Parallel()
	list := PriceList{
		{"eu.*", Price{Input: 6, Output: 30}}, {
			"claude-opus-*", Price{Input: 3, Output: 12, CacheRead: 1},
		},
	}
	for name, input := range map[string]float64{
		"claude-opus-5-5": 3, "us.anthropic.claude-opus-5-5-v1:0": 3, "EU.anthropic.claude-opus-5-5-v1:0": 6,
		"claude-sonnet-5": 2,
	} {
		if p, known := list.Of(name); !known || p.Input != input {
			t.Errorf("%s costs %+v", name, p)
		}
	}
	for _, q := range []struct {
		asked, answers string
		usd            float64
	}{
		{"eu.anthropic.claude-opus-5-5", "claude-opus-5-5", 6}, // what answers need not say the region
		{"eu.anthropic.claude-sonnet-5-5", "claude-opus-5-5", 3},
		{"claude-opus-5-5", "claude-sonnet-5", 3}, // a gateway may price what it is asked for
		{"claude-opus-5-5", "", 3},
	} {
		c := call{question: question{Model: q.asked}, traffic: &traffic{prices: list}, lease: leased()}
		if c.charge(Bill{Usage: Usage{Input: 1e6}}, q.answers); c.usd != q.usd {
			t.Errorf("%+v costs $%f", q, c.usd)
		}
	}
	b := Bill{Usage: Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheCreation: 3e6}}
	b.Cache.Hour = 1e6
	if usd := list[1].Cost(b); usd != 3+12+1+2*3.75+6 {
		t.Errorf("$%f", usd)
	}

	model := newBank(t)
	model.says("key-a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"claude-opus-5-5","usage":{"input_tokens":1000000}}`)
	})
	u, _ := several(t, model, apiKey("a"))
	u.keys.keys[0].Prices = list
	g, err := u.Open(Run{MaxUSD: 3, Note: func(string, ...any) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, want := range []int{http.StatusOK, http.StatusPaymentRequired} {
		if status, text := ask(t, g); status != want {
			t.Errorf("%d %s, want %d", status, text, want)
		}
	}
	if api := g.Seen(); api.CostUSD != 3 { // 4 at list price
		t.Errorf("$%f", api.CostUSD)
	}
}

// Where an operator allows certain models, a run that names none starts with the CLI's default if that is allowed, and
// otherwise with the first of them.
func TestAllowedModels(t *testing.T) {
	t.Parallel()
	key, login := Credential{APIKey: "k"}, Credential{OAuthToken: "t"}
	for _, c := range []struct {
		credential Credential
		allowed    []string
		start      string // empty: the CLI's default
		opus       bool   // may be asked
	}{
		{key, nil, "", true},
		{key, []string{"haiku", "opus"}, "", true},
		{key, []string{"sonnet", "haiku"}, "sonnet", false},
		{key, []string{"haiku"}, "haiku", false},
		{key, []string{"haiku", "default"}, "", true},
		{login, []string{"haiku", "sonnet"}, "", false},
		{login, []string{"opus"}, "opus", true},
	} {
		u, _ := several(t, newBank(t), Named{Credential: c.credential})
		u.cfg.Models = c.allowed
		start, opus := u.StartModel(""), open(t, u).allows("claude-opus-5-5")
		if start != c.start || opus != c.opus || u.StartModel("own") != "own" {
			t.Errorf("of %q a run starts with %q; opus %t", c.allowed, start, opus)
		}
	}
}
