package github

import (
	"net/http"
	"strings"
	"testing"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/store"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	forge := must(hub.New(hub.Config{APIURL: "https://api.github.com/", Token: "t"}))
	good := Config{Forge: forge, WebhookSecret: "s", Memory: &store.Memos{}}
	s, err := New(good)
	if err != nil || s.Name() != "github" {
		t.Fatalf("a good configuration: %v", err)
	}
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"no memory", func(c *Config) { c.Memory = nil }},
		{"no forge", func(c *Config) { c.Forge = nil }},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// A worker posts without the webhook secret, and nothing listens without it or polling.
func TestListenNeedsTheWebhookSecret(t *testing.T) {
	t.Parallel()
	s, err := New(Config{
		Forge: must(hub.New(hub.Config{APIURL: "https://api.github.com/", Token: "t"})), Memory: &store.Memos{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(t.Context(), http.NewServeMux(), nil); err == nil ||
		!strings.Contains(err.Error(), "neither a webhook secret nor polling") {
		t.Errorf("got %v", err)
	}
}
