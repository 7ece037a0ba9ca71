package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/web/api"
)

// The audit log is listed, filtered and verified; a changed byte is found and named.
func TestAudit(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("look")
	for _, args := range [][]string{{"cancel", id}, {"retry", id}, {"token", "create", "--scope", "viewer", "ci"}} {
		if code, _, errs := f.run(args...); code != 0 {
			t.Fatalf("%v: exit %d: %s", args, code, errs)
		}
	}
	code, out, errs := f.run("audit")
	if lines := strings.Split(out, "\n"); code != 0 || errs != "" || len(lines) != 5 ||
		!strings.Contains(lines[1], "POST /api/tokens") ||
		!strings.Contains(lines[3], "console  admin  127.0.0.1  202     POST /api/tasks/"+id+"/cancel") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	for _, args := range [][]string{
		{"--what", "RETRY"},
		{"--what", "/tokens"},
		{"--limit", "1"},
		{"--skip", "2"},
		{"--who", "Cons", "--since", "2026-01-01", "--what", "cancel"},
	} {
		var page api.AuditPage
		if code, out, errs := f.run(append([]string{"audit", "-o", "json"}, args...)...); code != 0 ||
			json.Unmarshal([]byte(out), &page) != nil || len(page.Entries) != 1 {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	for _, args := range [][]string{{"--who", "dana"}, {"--since", "2999-01-01"}} {
		if code, out, errs := f.run(append([]string{"audit"}, args...)...); code != 0 || errs != "No entries.\n" {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
	if code, _, errs := f.run("audit", "--since", "yesterday"); code != 2 ||
		!strings.Contains(errs, "since must be a day") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := f.run("audit", "--limit", "1"); code != 0 || errs != "For older entries add --skip 1\n" {
		t.Errorf("exit %d: %s", code, errs)
	}

	if code, out, _ := f.run("audit", "verify"); code != 0 || out != "The chain of 3 entries is intact.\n" {
		t.Errorf("exit %d: %s", code, out)
	}
	second := f.redis.LIndex(t.Context(), "errand:audit", 1).Val()
	f.redis.LSet(t.Context(), "errand:audit", 1, strings.Replace(second, "/retry", "/Retry", 1))
	if code, out, _ := f.run("audit", "verify"); code != 1 ||
		!strings.HasPrefix(out, "The chain is broken: audit entry 2: ") ||
		!strings.HasSuffix(out, "1 entries before it are intact.\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out, _ := f.run("audit", "verify", "-o", "json"); code != 1 ||
		!strings.Contains(out, `"problem": "audit entry 2`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A token is printed once, works as far as its scope says, and is worth nothing after it was revoked.
func TestTokens(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	code, out, errs := f.run("token", "create", "ci", "--scope", "operator:acme/*,other/x", "--expires", "30d")
	secret := strings.TrimSpace(out)
	if code != 0 || !strings.HasPrefix(secret, "errand_") || strings.Contains(out, " ") ||
		!strings.Contains(errs, "not shown again") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	id := f.submit("look") // of acme/app
	if code, out, errs := f.run("token", "list"); code != 0 || strings.Contains(out+errs, secret) ||
		!strings.Contains(out, "ci    operator  acme/*,other/x  console") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	f.env["ERRAND_CONSOLE_TOKEN"] = secret
	if code, _, errs := f.run("cancel", id); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, args := range [][]string{{"token", "list"}, {"audit"}, {"audit", "verify"}} {
		if code, _, errs := f.run(args...); code != 1 || !strings.Contains(errs, "This needs the role admin.") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	f.env["ERRAND_CONSOLE_TOKEN"] = testToken
	if code, _, errs := f.run("token", "revoke", "ci"); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
	if code, _, errs := f.run("token", "revoke", "ci"); code != 1 || !strings.Contains(errs, "There is no token") {
		t.Errorf("exit %d: %s", code, errs)
	}
	f.env["ERRAND_CONSOLE_TOKEN"] = secret
	if code, _, errs := f.run("list"); code != 1 || !strings.Contains(errs, "refused the token") {
		t.Errorf("exit %d: %s", code, errs)
	}
	f.env["ERRAND_CONSOLE_TOKEN"] = testToken
	for _, args := range [][]string{
		{"token", "x"},
		{"token", "create", "x"},
		{"token", "create", "--scope", "king", "x"},
		{"token", "create", "--scope", "user", "--expires", "soon", "x"},
		{"token", "revoke"},
	} {
		if code, out, _ := f.run(args...); code != 2 || out != "" {
			t.Errorf("%v: exit %d: %s", args, code, out)
		}
	}
}

// Linked accounts are listed, and an operator unlinks one.
func TestPeople(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if code, _, errs := f.run("people", "list"); code != 0 || !strings.Contains(errs, "No linked accounts.") {
		t.Errorf("exit %d: %s", code, errs)
	}
	body := json.RawMessage(`{"user": "U0ANN", "name": "Ann", "team": "T1", "login": "ann-acme", "until": "2999-01-01T00:00:00Z"}`)
	if err := f.Store.Links.Save(t.Context(), "U0ANN", body); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := f.run("people", "list"); code != 0 ||
		!strings.Contains(out, "U0ANN  Ann   T1         ann-acme  2999-01-01") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, out, _ := f.run("people", "unlink", "U0ANN"); code != 0 || !strings.Contains(out, "not linked any more") {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _, errs := f.run("people", "unlink", "U0ANN"); code != 1 || !strings.Contains(errs, "is not linked") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
