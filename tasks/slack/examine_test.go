package slack

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/app"
)

// wrongs returns the checks that fail.
func wrongs(list []doctor.Finding) (what []string) {
	for _, c := range list {
		if c.Why != "" {
			what = append(what, c.What)
		}
	}
	return what
}

func names(list []app.Scope) (names []string) {
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	all := names(app.Scopes())
	for name, tc := range map[string]struct {
		scopes []string
		now    func() time.Time
		fail   *slackfake.Failure
		want   []string
		fatal  bool
	}{
		"well":           {scopes: all},
		"behind a proxy": {},
		"without files":  {scopes: all[:len(all)-1], want: []string{"Slack: the app lacks the scope files:write"}},
		"older app": {scopes: slices.DeleteFunc(slices.Clone(all), func(s string) bool {
			return s == "commands"
		})},
		"mute": {
			scopes: slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "chat:write" }),
			want:   []string{"Slack: the app lacks the scope chat:write"}, fatal: true,
		},
		"late": {
			scopes: all, now: func() time.Time { return time.Now().Add(-2 * time.Hour) },
			want: []string{"the clock is "}, fatal: true,
		},
		"revoked": {
			fail: &slackfake.Failure{Error: "token_revoked"},
			want: []string{"Slack refuses the bot token: token_revoked"}, fatal: true,
		},
		"away": {fail: &slackfake.Failure{Status: 500}, want: []string{"Slack does not answer"}, fatal: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, Config{Now: tc.now}, slackfake.Config{Scopes: tc.scopes})
			if tc.fail != nil {
				w.Fail("auth.test", *tc.fail)
			}
			got := w.source.Diagnose(t.Context())
			wrong := wrongs(got)
			fatal := slices.ContainsFunc(got, func(c doctor.Finding) bool { return c.Fatal })
			if len(wrong) != len(tc.want) || len(wrong) > 0 && !strings.HasPrefix(wrong[0], tc.want[0]) ||
				fatal != tc.fatal {
				t.Errorf("checks %+v", got)
			}
			for _, c := range got {
				if (c.Why == "") != (c.Remedy == "") {
					t.Errorf("no remedy, or one for nothing: %+v", c)
				}
			}
		})
	}
}

// A wrong signing secret shows as soon as Slack has sent an event.
func TestExamineSignatures(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	resp, err := f.Send(t.Context(), f.Envelope(nil), slackfake.SendOptions{WrongSignature: true})
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v, %v", resp, err)
	}
	equal(t, "after a wrong one", wrongs(f.source.Diagnose(t.Context())),
		[]string{"Slack: the last request had a wrong signature"})
	f.mention("hello")
	equal(t, "after a right one", wrongs(f.source.Diagnose(t.Context())), []string(nil))
}

// The manifest requests exactly what the doctor checks, and one way of receiving events.
func TestManifest(t *testing.T) {
	t.Parallel()
	for base, name := range map[string]string{"": "manifest_socket.json", "https://e.example/": "manifest_http.json"} {
		text, err := app.Manifest("errand", base)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, string(text))
		var m struct {
			OAuth    struct{ Scopes struct{ Bot []string } } `json:"oauth_config"`
			Settings struct {
				Events struct {
					URL string `json:"request_url"`
				} `json:"event_subscriptions"`
				Interactivity struct {
					URL string `json:"request_url"`
				}
				Socket bool `json:"socket_mode_enabled"`
			}
		}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		equal(t, "scopes", m.OAuth.Scopes.Bot, names(app.Scopes()))
		equal(t, "ways in", []bool{m.Settings.Socket, m.Settings.Events.URL != "", m.Settings.Interactivity.URL != ""},
			[]bool{base == "", base != "", base != ""})
	}
	for _, wrong := range [][2]string{
		{"", ""}, {strings.Repeat("x", 36), ""}, {"errand", "http://e.example"}, {"errand", "e.example"},
	} {
		if _, err := app.Manifest(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
}

// The type of Slack's SDK for manifests allows those that we print.
func TestManifestIsSlacks(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "https://errand.example.com"} {
		text, err := app.Manifest("errand", base)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := slackfake.Contract().Check("manifest", v, true); err != nil {
			t.Errorf("with URL %q: %v", base, err)
		}
	}
}
