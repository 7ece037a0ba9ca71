package config

import (
	"slices"
	"strings"
	"testing"
)

func TestFleetToken(t *testing.T) {
	t.Parallel()
	token := func(url string) string {
		c := Config{Redis: Redis{URL: RedisURL(url)}}
		got := c.FleetToken().Reveal()
		if got != "" && !slices.Contains(c.Secrets(), got) {
			t.Errorf("the token of %q is no secret", url)
		}
		return got
	}
	made := token("redis://:hush@a.example:6379/0")
	if len(made) != 64 || strings.Contains(made, "hush") {
		t.Errorf("made from the password: %q", made)
	}
	if other := token("rediss://errand:hush@b.example:6380/1"); other != made {
		t.Error("the same password, another address: another token")
	}
	if other := token("redis://:hushed@a.example:6379/0"); other == made {
		t.Error("another password, the same token")
	}
	if got := token("redis://a.example:6379/0"); got != "" {
		t.Errorf("without a password: %q", got)
	}
}
