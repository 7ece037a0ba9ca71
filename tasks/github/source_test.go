package github

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := Config{APIURL: "https://api.github.com/", WebhookSecret: "s", Token: "t", Memory: &store.Memos{}}
	s, err := New(good)
	if err != nil || s.Name() != "github" {
		t.Fatalf("a good configuration: %v", err)
	}
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"no memory", func(c *Config) { c.Memory = nil }},
		{"no webhook secret", func(c *Config) { c.WebhookSecret = "" }},
		{"neither a token nor an App", func(c *Config) { c.Token = "" }},
		{"both a token and an App", func(c *Config) { c.AppID = 1 }},
		{"ends in a slash", func(c *Config) { c.APIURL = "https://api.github.com" }},
		{"ends in a slash", func(c *Config) { c.APIURL = "" }},
		{"read the App's key", func(c *Config) { c.Token, c.AppID = "", 1 }},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
