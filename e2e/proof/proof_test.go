// Package proof holds what takes large libraries or programs of others to check: the Dockerfile, read by BuildKit; the
// Helm chart, rendered by Helm itself; the rules and the dashboard, read by Prometheus' own parser and asked of a real
// Prometheus that scrapes the demo.
// `make proof` installs Prometheus and runs the tests. ARGS=-update rewrites deploy/kubernetes.
package proof

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated files")

// top is the root of the checkout.
const top = "../.."

// read returns a file of the checkout.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden compares a generated file with the checkout, or rewrites it.
func golden(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join(top, name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, name) != want {
		t.Errorf("%s is not what it is generated from: make proof ARGS=-update", name)
	}
}
