package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is the name under which Published holds errand.yaml.
const File = "errand.yaml"

// Published returns what a process publishes of its configuration, so that differences within a fleet can be found: the
// settings that its environment gives, without secrets, and a digest of errand.yaml.
func (c Config) Published() map[string]string {
	all := map[string]string{File: "none"}
	if c.Paths.File != "" {
		var values any // in the file, whichever keys this version of errand knows
		if c.Document != nil {
			_ = c.Document.Decode(&values) // Load reports what cannot be decoded
		}
		content, _ := yaml.Marshal(values) // plain data
		sum := sha256.Sum256(content)
		all[File] = "content " + hex.EncodeToString(sum[:4])
	}
	for _, s := range c.Settings() {
		if s.Given && (Shared(s.Name) || own(s.Name)) {
			all[s.Name] = s.Value
		}
	}
	return all
}

// Shared reports whether a published setting has to be the same in the whole fleet.
func Shared(name string) bool {
	switch name {
	case File, "ERRAND_REDIS_REPLICAS", "ERRAND_OBJECTS", "ERRAND_PUBLIC_URL", "ERRAND_LINK_DAYS", "ERRAND_FLEET_NAME",
		"ERRAND_RUN_LIMIT":
		return true
	case "GITHUB_APP_PRIVATE_KEY": // the key, or any path
		return false
	case "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN", "GITHUB_WEBHOOK_SECRET": // workers need none
		return false
	}
	return strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "GITHUB_")
}

// own reports whether a setting is published although each worker may have its own.
func own(name string) bool {
	switch name {
	case "ANTHROPIC_BASE_URL", "ERRAND_GATEWAY", "ERRAND_MODEL", "ERRAND_SANDBOX",
		"ERRAND_CLAUDE", "ERRAND_POOL", "ERRAND_CONCURRENCY",
		"ERRAND_IDLE_LIMIT", "ERRAND_RUN_MEMORY_GB", "ERRAND_RUN_DISK_GB", "ERRAND_RUN_PROCESSES":
		return true
	}
	return strings.HasPrefix(name, "ERRAND_KEEP_")
}
