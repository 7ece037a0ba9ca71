package github

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// wrongs are the checks that are not well, the fatal ones with a mark; every one of them has a remedy.
func (w *world) wrongs() (what []string) {
	w.Helper()
	list := w.src.Diagnose(w.Context())
	for _, c := range list {
		if (c.Why == "") != (c.Remedy == "") {
			w.Errorf("no remedy, or one for nothing: %+v", c)
		}
		switch {
		case c.Fatal:
			what = append(what, "! "+c.What)
		case c.Why != "":
			what = append(what, c.What)
		}
	}
	if len(list) == 0 {
		w.Error("nothing was looked at")
	}
	return what
}

func (w *world) wantWrongs(want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.wrongs()); diff != "" {
		w.Errorf("wrong (-want +got):\n%s", diff)
	}
}

func TestExamineToken(t *testing.T) {
	t.Parallel()
	const me = `{"login":"errand"}`
	soon := time.Now().Add(72 * time.Hour).UTC()
	for name, tc := range map[string]struct {
		fail *githubfake.Failure
		want []string
	}{
		"fine-grained": {},
		"classic": {&githubfake.Failure{
			Status: 200, Body: me, Header: http.Header{"X-Oauth-Scopes": {"read:org, repo"}},
		}, nil},
		"narrow": {
			&githubfake.Failure{Status: 200, Body: me, Header: http.Header{"X-Oauth-Scopes": {""}}},
			[]string{"GitHub: the token lacks the scope repo"},
		},
		"mighty": {
			&githubfake.Failure{Status: 200, Body: me, Header: http.Header{"X-Oauth-Scopes": {"repo, workflow"}}},
			[]string{"GitHub: the token has the scope workflow"},
		},
		"ending": {
			&githubfake.Failure{
				Status: 200, Body: me,
				Header: http.Header{"Github-Authentication-Token-Expiration": {soon.Format("2006-01-02 15:04:05 UTC")}},
			},
			[]string{"GitHub: the token expires on " + soon.Format(time.DateOnly)},
		},
		"revoked": {&githubfake.Failure{Status: 401}, []string{"! GitHub refuses the token"}},
		"away":    {&githubfake.Failure{Status: 502}, []string{"! GitHub does not answer"}},
		"from elsewhere": {
			&githubfake.Failure{Status: 403, Body: `{"message": "Your address is not permitted."}`},
			[]string{"! GitHub refuses errand"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withToken(t)
			if tc.fail != nil {
				w.hub.Fail("GET /user", *tc.fail)
			}
			w.wantWrongs(tc.want...)
		})
	}
}

// An App that was made of the manifest, with webhooks that arrive, is well.
func TestExamineApp(t *testing.T) {
	t.Parallel()
	w := newApp(t, githubfake.Config{Events: hub.Events()})
	w.listen()
	w.open()
	w.wantWrongs()
	last, err := w.src.Inbound()
	if last.IsZero() || err != nil {
		t.Errorf("last event %s, %v", last, err)
	}
}

// hooked is an App whose webhooks go to the front door, as far as GitHub knows.
func hooked(t *testing.T, fake githubfake.Config, change ...func(*config)) *world {
	t.Helper()
	w := newApp(t, fake, change...)
	w.hub.Deliver("https://errand.example" + hub.HookPath)
	return w
}

func TestExamineAppSettings(t *testing.T) {
	t.Parallel()
	body := func(v any) *githubfake.Failure {
		return &githubfake.Failure{Status: 200, Body: string(must(json.Marshal(v)))}
	}
	installed := func(change func(map[string]any)) *githubfake.Failure {
		one := map[string]any{
			"id": 5, "account": map[string]any{"login": "acme"}, "permissions": hub.Permissions(), "suspended_at": nil,
			"html_url": "https://github.example/5",
		}
		change(one)
		return body([]any{one})
	}
	hook := func(key, value string) *githubfake.Failure {
		all := map[string]string{
			"url": "https://errand.example" + hub.HookPath, "content_type": "json", "insecure_ssl": "0",
			"secret": "********",
		}
		all[key] = value
		return body(all)
	}
	const config, installations = "GET /app/hook/config", "GET /app/installations"
	for name, tc := range map[string]struct {
		route string
		fail  *githubfake.Failure
		want  []string
	}{
		"another App": {
			"GET /app", &githubfake.Failure{Status: 401}, []string{"! GitHub refuses what the App signs"},
		},
		"away":    {"GET /app", &githubfake.Failure{Status: 502}, []string{"! GitHub does not answer"}},
		"nowhere": {installations, body([]any{}), []string{"! GitHub: the App is installed nowhere"}},
		"suspended": {
			installations, installed(func(m map[string]any) { m["suspended_at"] = time.Now() }),
			[]string{"GitHub: the installation at acme is suspended"},
		},
		"not accepted": {installations, installed(func(m map[string]any) {
			delete(m["permissions"].(map[string]string), "checks")
		}), []string{"GitHub: the installation at acme lacks the permission checks: write"}},
		"untold": {
			installations, &githubfake.Failure{Status: 500}, []string{"GitHub did not say where the App is installed"},
		},
		"relay": {
			config, hook("url", "https://relay.example/x"),
			[]string{`GitHub: webhooks go to "https://relay.example/x"`},
		},
		"no secret": {config, hook("secret", ""), []string{"! GitHub: webhooks are not signed"}},
		"any server": {
			config, hook("insecure_ssl", "1"), []string{"GitHub: webhooks are sent without certificate verification"},
		},
		"no hook": {
			config, &githubfake.Failure{Status: 404}, []string{"GitHub did not say where the App's webhooks go"},
		},
		"no deliveries": {
			"GET /app/hook/deliveries", &githubfake.Failure{Status: 500},
			[]string{"GitHub did not say how webhooks were answered"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := hooked(t, githubfake.Config{Events: hub.Events()})
			w.hub.Fail(tc.route, *tc.fail)
			w.wantWrongs(tc.want...)
		})
	}
}

// A missing permission of the App should be reported once, not for each installation.
func TestExamineAppPermissions(t *testing.T) {
	t.Parallel()
	has := maps.Clone(hub.Permissions())
	has["workflows"], has["contents"] = "write", "read"
	delete(has, "actions")
	w := hooked(t, githubfake.Config{Events: []string{"push"}, Permissions: has})
	want := []string{
		"! GitHub: the App lacks the permission contents: write", "GitHub: the App lacks the permission actions: read",
		"GitHub: the App has the permission workflows",
	}
	for _, name := range hub.Events() {
		if name != "push" {
			want = append(want, "GitHub: the App does not subscribe to "+name)
		}
	}
	w.wantWrongs(want...)
}

func TestExamineClock(t *testing.T) {
	t.Parallel()
	for off, fatal := range map[time.Duration]bool{
		-time.Minute: false, 20 * time.Second: false, -2 * time.Hour: true, time.Minute: true,
	} {
		w := hooked(t, githubfake.Config{Events: hub.Events()}, func(c *config) {
			c.Now = func() time.Time { return time.Now().Add(off) }
		})
		list := w.src.Diagnose(t.Context())
		i := slices.IndexFunc(list, func(c doctor.Finding) bool { return strings.HasPrefix(c.What, "the clock is ") })
		if i < 0 || list[i].Fatal != fatal {
			t.Errorf("%s off: %+v", off, list)
		}
	}
}

// A delivery that was refused and then taken is no loss; one that was only refused is, and the secret may be wrong.
func TestExamineDeliveries(t *testing.T) {
	t.Parallel()
	w := hooked(t, githubfake.Config{Events: hub.Events()})
	f := w.listen()
	send := func(o githubfake.SendOptions) { f.send("watch", map[string]string{"action": "started"}, o) }
	send(githubfake.SendOptions{GUID: "a", Signature: githubfake.SignWrong})
	w.wantWrongs("! GitHub: 1 of the last 1 webhooks were not accepted",
		"GitHub: the last webhook had a wrong signature")
	send(githubfake.SendOptions{GUID: "b"})
	w.wantWrongs("GitHub: 1 of the last 2 webhooks were not accepted")
	send(githubfake.SendOptions{GUID: "a"})
	w.wantWrongs()
}
