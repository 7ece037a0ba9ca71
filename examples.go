// Package errand has the examples of a configuration, which programs take along.
package errand

import _ "embed" // the examples

// Env is .env.example: every setting of the environment, explained.
//
//go:embed .env.example
var Env string

// YAML is errand.example.yaml: what belongs to what, explained.
//
//go:embed errand.example.yaml
var YAML string
