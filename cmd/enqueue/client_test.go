package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	const nobody = "127.0.0.1:1"
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler(f.server.URL+"/api/chat", http.StatusMovedPermanently))
	defer moved.Close()
	id := f.submit("Hello")
	for name, test := range map[string]struct {
		args        string
		addr, token string
		want        string
	}{
		"nobody there": {
			"list", nobody, "x",
			"is `enqueue serve` or `worker -standalone` running there? Otherwise set ERRAND_HTTP_ADDR",
		},
		"nobody to chat": {
			"chat --follow hello", nobody, "x",
			"is `enqueue serve` or `worker -standalone` running there? Otherwise set ERRAND_HTTP_ADDR",
		},
		"nobody to log": {
			"logs -f " + id, nobody, "x",
			"is `enqueue serve` or `worker -standalone` running there? Otherwise set ERRAND_HTTP_ADDR",
		},
		"no token": {"list", f.server.URL, "", "the server requires a token: set ERRAND_CONSOLE_TOKEN"},
		"wrong token": {
			"logs -f " + id, f.server.URL, "wrong", "the server refused the token: set ERRAND_CONSOLE_TOKEN",
		},
		"broken token":   {"list", f.server.URL, "one\ntwo", "ERRAND_CONSOLE_TOKEN contains blanks"},
		"someone's JSON": {"list", elsewhere.URL, "x", "it has no tasks: is this errand?"},
		"someone else":   {"list", other.URL, "x", "404 Not Found: is this errand?"},
		"moved":          {"chat hello", moved.URL, testToken, "redirects to " + f.server.URL + ": set ERRAND_HTTP_ADDR"},
		"a page":         {"list", f.server.URL + "/#/x", "x", "must be host:port or a URL like"},
		"no address":     {"list", "errand.test", "x", "must be host:port or a URL, not"},
		"no URL":         {"list", "http://ann:s3cret@errand.test", "x", "must be host:port or a URL like"},
		"path as ID":     {"cancel ../tasks", f.server.URL, testToken, "No such task"},
		"unknown task":   {"show 1700000000000000-chat-x", f.server.URL, testToken, "No such task"},
		"to follow":      {"logs -f 1700000000000000-chat-x", f.server.URL, testToken, "No such task"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			env := map[string]string{"ERRAND_HTTP_ADDR": test.addr, "ERRAND_CONSOLE_TOKEN": test.token}
			code := run(t.Context(), strings.Fields(test.args),
				world{getenv: func(name string) string { return env[name] }, stdout: &out, stderr: &errs})
			if code != 1 || out.Len() > 0 || !strings.Contains(errs.String(), test.want) ||
				strings.Contains(errs.String(), "s3cret") ||
				name == "to follow" && strings.Contains(errs.String(), "again") {
				t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
			}
		})
	}
}

// A variable with a wrong name is warned about, and nothing else changes.
func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.shell = []string{"ERRAND_CONSOLE_TOKN=s3cret", "ERRAND_RUN=of-a-run", "HOME=/root"}
	const want = "enqueue: warning: ERRAND_CONSOLE_TOKN is not a setting of errand and has no effect; did you mean ERRAND_CONSOLE_TOKEN?\n"
	for _, args := range []string{"list", "costs", "init slack --url https://errand.example"} {
		code, out, errs := f.run(strings.Fields(args)...)
		if code != 0 || !strings.HasPrefix(errs, want) || strings.Count(errs, "warning") != 1 ||
			strings.Contains(out+errs, "s3cret") {
			t.Errorf("%s: exit %d: %s", args, code, errs)
		}
	}
	if _, _, errs := f.run("list", "-h"); strings.Contains(errs, "warning") {
		t.Errorf("help: %s", errs)
	}
}

// An invalid flag is a usage error: one line and exit code 2.
func TestFlagsThatCannotBe(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for args, want := range map[string]string{
		"list --limit abc":          "limit must be a number from 1 to 200.",
		"list --limit 0":            "limit must be a number from 1 to 200.",
		"list --limit 1000":         "limit must be a number from 1 to 200.",
		"list --before x":           "before must be the ID of a task",
		"list --repo api":           "repository must be owner/name.",
		"costs --days -3":           "days must be a number from 1 to 90.",
		"costs --from yesterday":    "from and to must be dates such as 2026-01-31.",
		"costs --json=perhaps":      `invalid argument "perhaps" for "--json" flag`,
		"chat --repo acme hello":    "Invalid repo: Write owner/name.",
		"doctor --quick":            "unknown flag: --quick",
		"init slack --url http://x": "https://errand.example.com",
	} {
		var out, errs strings.Builder
		env := map[string]string{"ERRAND_HTTP_ADDR": f.server.URL, "ERRAND_CONSOLE_TOKEN": testToken}
		code := run(t.Context(), strings.Fields(args), world{
			getenv: func(name string) string { return env[name] }, stdout: &out, stderr: &errs,
		})
		if code != 2 || out.Len() > 0 || !strings.Contains(errs.String(), want) ||
			strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: exit %d: %s%s", args, code, out.String(), errs.String())
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"":                        "http://127.0.0.1:8080",
		":9000":                   "http://127.0.0.1:9000",
		"0.0.0.0:9000":            "http://127.0.0.1:9000",
		"[::]:9000":               "http://[::1]:9000",
		"errand.test:9000":        "http://errand.test:9000",
		"https://errand.test/":    "https://errand.test",
		" HTTPS://errand.test\n":  "https://errand.test",
		"http://errand.test:90/x": "http://errand.test:90/x",
	} {
		if d, err := newAPIClient(addr, ""); err != nil || d.base != want {
			t.Errorf("%q is %+v, %v; want %s", addr, d, err, want)
		}
	}
}
