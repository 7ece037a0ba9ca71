package environment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDevcontainer(t *testing.T) {
	t.Parallel()
	d, wrong := ParseDevcontainer([]byte(`{
		// a comment
		"name": "api", "image": "debian", /* another */ "features": {"./tool": {}},
		"onCreateCommand": ["npm", "ci", "it's"],
		"postCreateCommand": {"web": "cd web && make # all", "api": ["make", "api"]},
		"postStartCommand": "redis-server --daemonize yes",
		"containerEnv": {"A": "1", "HOME": "/evil", "URL": "${localEnv:URL}"},
		"remoteEnv": {"A": "2", "B": null,},
	}`))
	want := Declaration{
		Env:   map[string]string{"A": "2"},
		Setup: []string{`'npm' 'ci' 'it'\''s'`, "'make' 'api'", "(cd web && make # all\n)"},
		Start: []string{"(redis-server --daemonize yes\n)"},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	said := strings.Join(wrong, "\n")
	for _, part := range []string{
		"features, image cannot be used",
		`containerEnv: the value of "URL"`, `remoteEnv: the value of "B"`, "HOME is set by errand",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("%q lacks %q", said, part)
		}
	}
	if d, wrong := ParseDevcontainer([]byte(`{"postCreateCommand": `)); d.Setup != nil ||
		len(wrong) != 1 {
		t.Errorf("%+v, %q", d, wrong)
	}
}
