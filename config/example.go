package config

import _ "embed" // the example

// Example is errand.example.yaml, which explains every section of errand.yaml.
//
//go:embed errand.example.yaml
var Example string
