package config

import (
	"crypto/sha256"
	"encoding/hex"

	"go.yaml.in/yaml/v3"
)

// Digest identifies the values in errand.yaml, whichever keys this version of errand knows, so that differences within
// a fleet can be found.
func (c Config) Digest() string {
	var values any
	if c.Document != nil {
		_ = c.Document.Decode(&values) // Load reports what cannot be decoded
	}
	content, _ := yaml.Marshal(values) // plain data
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:4])
}
