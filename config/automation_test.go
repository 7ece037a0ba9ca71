package config

import (
	"strings"
	"testing"
)

func TestSecretOfHook(t *testing.T) {
	t.Parallel()
	reference := EnvReference(` {{ env "ALERTS_SECRET" }} `)
	for value, want := range map[string]string{
		"": "is not set", "short-hush": "has less than 16 characters", "long-enough-hush-1": "",
	} {
		secret, err := reference.Read(getenv(map[string]string{"ALERTS_SECRET": value}))
		if want == "" {
			if err != nil || secret.Reveal() != value {
				t.Errorf("%q: %v", value, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}

func TestHostsOfAutomation(t *testing.T) {
	t.Parallel()
	var p Problems
	r, _ := parseRouting(&p, "f", []byte(`schedules: {x: {when: every hour, prompt: Go., repository: github.com/acme/api}}
hooks: {y: {secret: '{{env "S"}}', template: Go., repository: github.com/acme/web}}`))
	r.trimHost("github.com")
	if len(p) > 0 || r.Schedules["x"].Repository != "acme/api" || r.Hooks["y"].Repository != "acme/web" {
		t.Errorf("%+v, %v", r, p)
	}
}
