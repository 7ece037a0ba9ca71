package config

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
)

func TestReadSecrets(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string { return map[string]string{"A": "one"}[name] }
	readFile := func(name string) ([]byte, error) {
		if name != "/b" {
			return nil, os.ErrNotExist
		}
		return []byte("two\n"), nil
	}
	r := Repository{Secrets: map[string]string{"ONE": "env:A", "TWO": "file:/b"}}
	if got, err := r.ReadSecrets(getenv, readFile); err != nil || !maps.Equal(got, map[string]string{"ONE": "one", "TWO": "two"}) {
		t.Error(got, err)
	}
	r.Secrets["THREE"], r.Secrets["FOUR"] = "env:B", "file:/c"
	got, err := r.ReadSecrets(getenv, readFile)
	if len(got) != 2 || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "read secret THREE: the variable B is not set") {
		t.Error(got, err)
	}
}
