package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Only credentials in headers are redacted, also without the scheme in front of them.
func TestSecretsInHeaders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config     Config
		want, free []string
	}{
		"a team": {
			Config{Model: Model{Headers: `X-Team: platform\nX-Region: eu-central-1`}},
			nil,
			[]string{"platform", "eu-central-1"},
		},
		"a scheme": {
			Config{Model: Model{Headers: `Authorization: Bearer sk-x\nX-Upstream: basic YTpi`}},
			[]string{"Bearer sk-x", "sk-x", "basic YTpi", "YTpi"},
			nil,
		},
		"names": {
			Config{Model: Model{Headers: "X-Api-Key: one\nX-Auth: two\nCookie: a=three\nX-Signature: four\nX-Author: five\nX-Amz-Security-Token: six"}},
			[]string{"one", "two", "a=three", "four", "six"},
			[]string{"five"},
		},
		"values": {
			Config{Model: Model{Headers: "X-A: 4f1c2ab09d774e2f8b10\nX-B: the team of 2026 in Berlin\nX-C: platform-of-the-company"}},
			[]string{"4f1c2ab09d774e2f8b10"},
			[]string{"the team of 2026 in Berlin", "platform-of-the-company"},
		},
		"traces": {
			Config{Traces: Traces{
				Headers: "Authorization=Basic%20YTpi%3D, x-dataset=errand, api-key=a%2Cb",
			}},
			[]string{"Basic YTpi=", "YTpi=", "a,b"},
			[]string{"errand"},
		},
	} {
		secrets := c.config.Secrets()
		for _, want := range c.want {
			if !slices.Contains(secrets, want) {
				t.Errorf("%s: %q is not redacted: %q", name, want, secrets)
			}
		}
		for _, free := range c.free {
			if slices.Contains(secrets, free) {
				t.Errorf("%s: %q is redacted", name, free)
			}
		}
	}
}

// OpenTelemetry's variables have their defined meaning: values are percent-encoded.
func TestTraces(t *testing.T) {
	t.Parallel()
	headers := Secret("Authorization=Basic%20abc+/= , x-team = a%2Cb,")
	for name, c := range map[string]struct {
		traces  Traces
		url     string
		headers map[string]string
	}{
		"none": {Traces{}, "", map[string]string{}},
		"some": {
			Traces{Endpoint: "http://h:4318", Headers: headers},
			"http://h:4318/v1/traces",
			map[string]string{"Authorization": "Basic abc+/=", "x-team": "a,b"},
		},
	} {
		if got := maps.Collect(c.traces.Pairs()); c.traces.URL() != c.url || !maps.Equal(got, c.headers) {
			t.Errorf("%s: %s with %q", name, c.traces.URL(), got)
		}
	}
}

func TestHeadersOfTracesAreChecked(t *testing.T) {
	t.Parallel()
	const name = "OTEL_EXPORTER_OTLP_HEADERS"
	for text, valid := range map[string]bool{
		"a=hush": true, "a=hush,b=": true, "a=hush, ,": true, "a=h%75sh%3D=": true, "hush": false,
		"a=hush%2": false, "a=1,b=hush%zz": false, "a b=hush": false, "=hush": false,
	} {
		vars := full()
		vars[name] = text
		_, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
		if valid != (err == nil) || err != nil && (!strings.Contains(err.Error(), name+" must be name=value") ||
			leaks(err.Error())) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
