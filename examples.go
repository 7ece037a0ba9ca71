// Package errand embeds the example of errand.yaml.
package errand

import _ "embed" // the example

// YAML is errand.example.yaml, which explains every section of errand.yaml.
//
//go:embed errand.example.yaml
var YAML string
