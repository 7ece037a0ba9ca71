package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// retired are models in whose place the CLI asks another one.
var retired = []string{"claude-opus-4-0", "claude-opus-4-1"}

// Each price is the one that the CLI reckons with, for every kind of token.
func TestCLIPrices(t *testing.T) {
	t.Parallel()
	usage := modelfake.Usage{Input: 1000, Output: 200, CacheRead: 3000, CacheWrite: 5000, CacheHour: 1000, Searches: 1}
	long := modelfake.Usage{Input: 95_000, Output: 200, CacheRead: 3000, CacheWrite: 5000, CacheHour: 1000}
	model := newModel(t)
	var messages []Message
	names := slices.Sorted(maps.Keys(gateway.Prices))
	for _, name := range append(names, gateway.SmallModel) { // which has a separate price for long prompts
		prompt := fmt.Sprintf("%d %s.", len(messages), name)
		u := usage
		if len(messages) == len(names) {
			u = long
		}
		model.Answer(prompt, modelfake.Turn{Text: "ok", Usage: u})
		messages = append(messages, Message{Text: prompt, Model: name})
	}
	model.Answer("begin", modelfake.Turn{Text: "ok"})
	r := newCLI(t, model, impatient)
	res := runCLI(t, r, Spec{ID: "prices", Prompt: Message{Text: "begin"}}, &host{more: slices.Clone(messages)})
	// by which the CLI looks for a model
	asked := slices.DeleteFunc(model.Requests(), func(q modelfake.Request) bool { return q.Text == "Hi" })
	claims := claims(t, r.logPath(unique("prices"), ".ndjson"))
	if len(claims) != len(messages)+1 || len(asked) != len(claims) {
		t.Fatalf("%d results of %d calls: %v", len(claims), len(asked), res.Error)
	}
	for i, m := range messages {
		if got := asked[i+1].Model; gateway.ModelID(got) != m.Model {
			if !slices.Contains(retired, m.Model) {
				t.Errorf("the CLI asks %s in place of %s", got, m.Model)
			}
			continue
		}
		u := usage
		if i == len(names) {
			u = long
		}
		b := gateway.Bill{Usage: Usage{
			Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead),
			CacheCreation: int64(u.CacheWrite),
		}}
		b.Cache.Hour, b.Server.Searches = int64(u.CacheHour), int64(u.Searches)
		if want, got := claims[i+1]-claims[i], gateway.Prices[m.Model].Cost(b); math.Abs(want-got) > 1e-9 {
			t.Errorf("%s %+v costs %.6f by the table, %.6f by the CLI", m.Model, u, got, want)
		}
	}
	// the CLI does not count the calls by which it looks for a model
	if last := claims[len(claims)-1]; res.CostUSD < last {
		t.Errorf("the run has cost %.6f, by the CLI %.6f", res.CostUSD, last)
	}
}

// claims are what the CLI said that its conversation had cost, after each turn.
func claims(t *testing.T, path string) (usd []float64) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		var l struct {
			Type string  `json:"type"`
			USD  float64 `json:"total_cost_usd"`
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Type == "result" {
			usd = append(usd, l.USD)
		}
	}
	return usd
}
