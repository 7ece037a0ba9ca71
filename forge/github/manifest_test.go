package github

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The manifest and the form ask for the same, which is what the doctor looks for.
func TestManifest(t *testing.T) {
	t.Parallel()
	app := App{Name: "errand", Base: "https://e.example/"}
	text := must(app.Manifest())
	golden(t, "manifest", string(text))
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	form := must(app.Form())
	for name, want := range map[string][]string{
		"name": {"errand"}, "webhook_url": {"https://e.example/github/webhook"}, "webhook_active": {"true"},
		"public":   {"false"},
		"events[]": m.Events,
	} {
		if diff := cmp.Diff(want, form[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, p := range permissions() {
		if m.Permissions[p.name] != p.level || form.Get(p.name) != p.level {
			t.Errorf("%s: %q in the manifest, %q in the form, want %s", p.name, m.Permissions[p.name],
				form.Get(p.name), p.level)
		}
	}
	if len(m.Permissions) != len(permissions()) || m.Hook.URL != form.Get("webhook_url") || !m.Hook.Active {
		t.Errorf("manifest %+v", m)
	}
}

// An App that GitHub cannot reach has no webhook.
func TestManifestWithoutAddress(t *testing.T) {
	t.Parallel()
	app := App{Name: "errand"}
	text, form := string(must(app.Manifest())), must(app.Form())
	if strings.Contains(text, "hook_attributes") || strings.Contains(text, "default_events") ||
		!strings.Contains(text, homepage) {
		t.Error(text)
	}
	if form.Get("webhook_active") != "false" || form.Has("webhook_url") || form.Has("events[]") ||
		form.Get("url") != homepage {
		t.Error(form)
	}
}

func TestManifestRefuses(t *testing.T) {
	t.Parallel()
	for _, wrong := range []App{
		{Base: "https://e.example"},
		{Name: strings.Repeat("x", 35), Base: "https://e.example"},
		{Name: "errand", Base: "http://e.example"},
		{Name: "errand", Base: "e.example"},
	} {
		if _, err := wrong.Manifest(); err == nil {
			t.Errorf("%+v: a manifest", wrong)
		}
		if _, err := wrong.Form(); err == nil {
			t.Errorf("%+v: a form", wrong)
		}
	}
}
