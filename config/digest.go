package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Digest identifies what has to be the same in the whole fleet, so that differences can be found: the values in
// errand.yaml, whichever keys this version of errand knows, and the shared settings that have other values than their
// defaults. Of a secret it has only whether it is set.
func (c Config) Digest() string {
	var values any
	if c.Document != nil {
		_ = c.Document.Decode(&values) // Load reports what cannot be decoded
	}
	var settings []string
	for _, s := range c.Settings() {
		if shared(s.Name) && s.Value != s.Default {
			settings = append(settings, s.Name+"="+s.Value)
		}
	}
	slices.Sort(settings)
	content, _ := yaml.Marshal([]any{values, settings}) // plain data
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:4])
}

// shared reports whether a setting has to be the same in the whole fleet, and can differ: a process with another
// ERRAND_FLEET_NAME does not start.
func shared(name string) bool {
	switch name {
	case "ERRAND_REDIS_REPLICAS", "ERRAND_OBJECTS", "ERRAND_PUBLIC_URL", "ERRAND_LINK_DAYS", "ERRAND_RUN_LIMIT":
		return true
	case "GITHUB_APP_PRIVATE_KEY": // the key, or any path
		return false
	case "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN", "GITHUB_WEBHOOK_SECRET", "GITHUB_POLL": // workers need none
		return false
	}
	return strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "GITHUB_")
}
