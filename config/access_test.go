package config

import (
	"strings"
	"testing"
)

// A login without roles would let people in who can do nothing, and a limited admin would still have every token.
func TestLoginAndRoles(t *testing.T) {
	t.Parallel()
	const roles = "\nroles: [{role: viewer, people: ['*@acme.test']}]"
	for yaml, want := range map[string]string{
		"login: {issuer: 'https://id.acme.test', client_id: errand}" + roles: "",
		"login: {issuer: 'https://id.acme.test', client_id: errand}":         "errand.yaml:1: login lets people log in who have no role",
		"login: {issuer: 'http://id.acme.test', client_id: errand}" +
			roles: "errand.yaml:1: login.issuer is not the https URL",
		"login: {issuer: 'https://id.acme.test'}" + roles: "errand.yaml:1: login has no client_id",
		"login: {isuer: x}":                                      "the keys here are issuer, client_id, scopes, groups, account",
		"roles: [{role: boss, people: [x]}]":                     "roles.1.role must be viewer, user, operator, admin, not",
		"roles:\n- role: viewer":                                 "errand.yaml:2: roles.1 is for no one",
		"roles: [{role: admin, people: [x], repositories: [y]}]": "limits admins to repositories",
		"roles: [{role: user, people: ['[']}]":                   `has "[", which is not a pattern`,
	} {
		_, err := load(getenv(map[string]string{
			"REDIS_URL": "redis://localhost", "ERRAND_CONSOLE_TOKEN": "console-token-0123",
			"ERRAND_LOGIN_SECRET": "hush", "ERRAND_PUBLIC_URL": "https://errand.test",
		}), machine(t, map[string]string{"errand.yaml": yaml}), RoleFrontdoor)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", yaml, err)
		}
	}
	yaml := machine(t, map[string]string{"errand.yaml": "login: {issuer: 'https://id.acme.test', client_id: errand}" +
		roles})
	env := map[string]string{
		"REDIS_URL": "redis://localhost", "ERRAND_CONSOLE_TOKEN": "console-token-0123", "ANTHROPIC_API_KEY": "x",
	}
	_, err := load(getenv(env), yaml, RoleFrontdoor)
	if err == nil || !strings.Contains(err.Error(), "ERRAND_LOGIN_SECRET is not set") ||
		!strings.Contains(err.Error(), "ERRAND_PUBLIC_URL is not set") {
		t.Errorf("without the secret and the URL: %v", err)
	}
	if _, err := load(getenv(env), yaml, RoleWorker); err != nil {
		t.Errorf("a worker needs neither: %v", err)
	}
}
