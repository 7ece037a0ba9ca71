package assemble

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

func TestCredentialName(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-of-the-fleet"
	name := func(base, key string) string {
		return credentialName(config.Config{Model: config.Model{BaseURL: base, APIKey: config.Secret(key)}})
	}
	got := name("https://a", key)
	if again := name("https://a", key); got == "" || got != again || strings.Contains(key, got) {
		t.Errorf("name %q, again %q", got, again)
	}
	if got == name("https://b", key) || got == name("https://a", "another") {
		t.Error("two credentials have one name")
	}
	if got := name("https://a", ""); got != "" {
		t.Errorf("no credential is named %q", got)
	}
}

// With several credentials, the name is that of all of them, whatever their order. Their values are redacted, and one
// that is missing is a problem of a worker.
func TestSeveralCredentials(t *testing.T) {
	t.Setenv("TEAM_A_KEY", "sk-team-a-0123456789")
	t.Setenv("TEAM_B_KEY", "sk-team-b-0123456789")
	a, b := config.Credential{Name: "a", APIKey: `{{env "TEAM_A_KEY"}}`}, config.Credential{
		Name: "b", APIKey: `{{env "TEAM_B_KEY"}}`,
	}
	with := func(list ...config.Credential) config.Config {
		return config.Config{Routing: config.Routing{Credentials: list}}
	}
	name := credentialName(with(a, b))
	if name == "" || name != credentialName(with(b, a)) || name == credentialName(with(a)) ||
		strings.Contains("sk-team-a-0123456789", name) {
		t.Errorf("name %q", name)
	}
	if got := redactor(with(a, b)).String("sk-team-a-0123456789, sk-team-b-0123456789"); strings.Contains(got, "0123456789") {
		t.Errorf("shown: %s", got)
	}
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file,
		[]byte(`credentials: [{name: a, api_key: '{{env "TEAM_A_KEY"}}'}, {name: none, api_key: '{{env "TEAM_C_KEY"}}'}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"REDIS_URL": "redis://:p@127.0.0.1:1/0", "ERRAND_CONFIG": file, "TEAM_A_KEY": "k",
		"ERRAND_CONSOLE_TOKEN": "console-token-0123", "ERRAND_SANDBOX": "none", "ERRAND_ALLOW_ROOT": "true",
	}
	getenv := func(name string) string { return env[name] }
	if _, err := Load(getenv, config.RoleWorker); err == nil ||
		!strings.Contains(err.Error(),
			`credential "none": credential: TEAM_C_KEY is not set in the environment; see docs/models.md`) {
		t.Errorf("a worker: %v", err)
	}
	if _, err := Load(getenv, config.RoleFrontdoor); err != nil {
		t.Errorf("a front door: %v", err)
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	c := load(t, `prices:
  bedrock:
    eu.*: {input: 5.5, output: 27.5, cache_read: 0.3}
    EU.anthropic.claude-opus*: {input: 6, output: 30}
  any:
    glm-*: {input: 1, output: 2}
`)
	glm := agent.ModelPrice{Pattern: "glm-*", Price: agent.Price{Input: 1, Output: 2, CacheRead: 0.1}}
	want := agent.PriceList{
		{
			Pattern: "eu.anthropic.claude-opus*",
			Price:   agent.Price{Input: 6, Output: 30, CacheRead: 0.6},
		},
		{Pattern: "eu.*", Price: agent.Price{Input: 5.5, Output: 27.5, CacheRead: 0.3}},
		glm,
	}
	if diff := cmp.Diff(want, modelPrices(c, config.ProviderBedrock)); diff != "" {
		t.Errorf("prices of Bedrock (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(agent.PriceList{glm}, modelPrices(c, c.Provider())); diff != "" {
		t.Errorf("prices of Anthropic (-want +got):\n%s", diff)
	}
}

// A model may be free if both prices say so.
func TestFreeModel(t *testing.T) {
	t.Parallel()
	c := load(t, "prices: {any: {a: {input: 0, output: 0}}}")
	if list := modelPrices(c, config.ProviderVertex); len(list) != 1 {
		t.Errorf("prices %+v", list)
	}
}

// A credential of a provider without prices has list prices, and not those of another provider.
func TestPricesOfCredentials(t *testing.T) {
	t.Parallel()
	list := credentials(config.Config{Routing: config.Routing{
		Credentials: []config.Credential{
			{Name: "aws", Provider: config.ProviderBedrock}, {Name: "key", APIKey: `{{env "KEY"}}`},
		},
		Prices: map[string]map[string]config.Price{config.ProviderAnthropic: {"claude-*": {
			Input: new(1.0), Output: new(2.0),
		}}},
	}})
	// nil: those of agent.Config
	if aws, key := list[0].Prices, list[1].Prices; aws == nil || len(aws) != 0 || len(key) != 1 {
		t.Errorf("prices %v and %v", aws, key)
	}
}

// The headers of the company's gateway do not go to a cloud itself.
func TestHeadersOfClouds(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Model: config.Model{Headers: "X-Team: platform"}, Cloud: config.Cloud{VertexURL: "https://llm.corp.example/v1"},
		Routing: config.Routing{Credentials: []config.Credential{
			{Provider: config.ProviderBedrock}, {Provider: config.ProviderVertex}, {APIKey: `{{env "KEY"}}`},
		}},
	}
	for i, want := range []int{0, 1, 1} {
		if got := credentials(c)[i].Headers; got == nil || len(got) != want { // nil: those of agent.Config
			t.Errorf("credential %d: %v", i, got)
		}
	}
}

// The command of the model's token ends with the request that wants it.
func TestModelTokenOfCancelledRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := modelToken(config.Config{}, "sleep 1000")(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
