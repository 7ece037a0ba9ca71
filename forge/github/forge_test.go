package github

import (
	"fmt"
	"strings"
	"testing"
)

func ExampleForge_CloneURL() {
	f, err := New(Config{APIURL: "https://api.github.com/", URL: "https://github.com", Token: "ghp_…"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.CloneURL("acme/api"))
	fmt.Println(f.CloneURL("github.com/acme/api"))
	// Output:
	// https://github.com/acme/api.git
	// https://github.com/acme/api.git
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := Config{APIURL: "https://api.github.com/", Token: "t"}
	if f, err := New(good); err != nil || f.Name() != "github" {
		t.Fatalf("a good configuration: %v", err)
	}
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"neither a token nor an App", func(c *Config) { c.Token = "" }},
		{"both a token and an App", func(c *Config) { c.AppID = 1 }},
		{"does not end in a slash", func(c *Config) { c.APIURL = "https://api.github.com" }},
		{"does not end in a slash", func(c *Config) { c.APIURL = "" }},
		{"read the App's key", func(c *Config) { c.Token, c.AppID = "", 1 }},
	} {
		cfg := good
		c.change(&cfg)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
