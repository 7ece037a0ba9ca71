// Package errand embeds the example configuration files.
package errand

import _ "embed" // the examples

// Env is .env.example, which explains every environment variable.
//
//go:embed .env.example
var Env string

// YAML is errand.example.yaml, which explains every section of errand.yaml.
//
//go:embed errand.example.yaml
var YAML string
