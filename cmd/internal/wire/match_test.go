package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
)

// People whose e-mail address in Slack is that of one member of the organisation on GitHub have the rights of that
// member.
func TestMatchedByEmail(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t, "slack: {match_email: [acme]}")
	w.github.AddMember("acme", "eve", "eve@acme.test")
	w.github.AddMember("acme", "twin1", "twins@acme.test")
	w.github.AddMember("acme", "twin2", "twins@acme.test")
	for _, login := range []string{"eve", "twin1", "twin2", "late"} {
		w.github.SetPermission(secret, login, "write")
	}
	w.github.SetPermission(secret, "p2", "read")
	for user, request := range map[string]string{
		"U0EVE": "of Eve", "U0TWIN": "of a twin", "U0P2": "of p2", "U0LATE": "of a stranger",
	} {
		w.say(theirs, user, request+".")
	}
	w.work()
	const unknown = "I do not know your account on GitHub"
	for request, want := range map[string]struct {
		profile agent.Profile
		why     string
	}{
		"of Eve.": {agent.Write, ""}, "of a twin.": {"", unknown}, "of a stranger.": {"", unknown},
		"of p2.": {agent.Read, ""}, // as people: says, not Eve's address
	} {
		profile, why := w.outcome(t, request)
		if profile != want.profile || !strings.HasPrefix(why, want.why) || (why == "") != (want.why == "") {
			t.Errorf("%s profile %q, refused %q", request, profile, why)
		}
	}
	w.github.AddMember("acme", "late", "late@acme.test") // from the next look on
	found := w.door.matcher.diagnose(t.Context())
	if len(found) != 1 ||
		found[0].What != "people in Slack are recognised by 2 e-mail addresses of members of acme on GitHub" ||
		found[0].Why != "" {
		t.Errorf("findings: %+v", found)
	}
}

// An address counts if it belongs to one account in all organisations. While GitHub refuses one, nobody is recognised,
// and while it fails, it is not known who they are.
func TestMatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		addresses := map[string]map[string]string{
			"one": {"ann@x": "ann", "bob@x": "bob", "twins@x": "", "odd@x": "odd"},
			"two": {"ann@x": "ann", "bob@x": "robert", "twins@x": "twin", "new@x": "new"},
		}
		fails, reads := map[string]error{}, 0
		members := func(_ context.Context, org string) (map[string]string, error) {
			reads++
			<-time.After(3 * time.Second)
			return addresses[org], fails[org]
		}
		m := newMatcher([]string{"one", "two"}, func(_ context.Context, user string) (string, error) {
			return user,
				nil
		}, members)
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if login, err := m.login(brief, "ann@x"); login != "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before the members are read: %q, %v", login, err)
		}
		expect := func(when string, want map[string]string) {
			t.Helper()
			got := map[string]string{}
			for user := range want {
				login, err := m.login(t.Context(), user)
				if err != nil {
					t.Errorf("%s: %s: %v", when, user, err)
				}
				got[user] = login
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		all := map[string]string{
			"": "", "Ann@X": "ann", "bob@x": "", "twins@x": "", "odd@x": "odd", "new@x": "new", "nobody@x": "",
		}
		expect("at first", all)
		if reads != 2 {
			t.Errorf("%d reads", reads)
		}
		away := errors.New("bad gateway")
		fails["two"] = away
		expect("from memory", all)
		<-time.After(membersLife)
		if login, err := m.login(t.Context(), "ann@x"); login != "" || !errors.Is(err, away) {
			t.Errorf("while GitHub fails: %q, %v", login, err)
		}
		fails["two"] = &forge.RefusedError{Sentence: "FORBIDDEN"}
		<-time.After(membersError)
		expect("refused", map[string]string{"ann@x": "", "odd@x": ""})
		if found := m.diagnose(t.Context()); len(found) != 2 || found[0].Why != "" || found[1].Why != "FORBIDDEN" ||
			found[1].Remedy == "" {
			t.Errorf("findings: %+v", found)
		}
		delete(fails, "two")
		addresses["two"] = nil
		<-time.After(membersError)
		expect("without a verified domain", map[string]string{"ann@x": "ann", "new@x": ""})
		if found := m.diagnose(t.Context()); found[1].What != "nobody in Slack is recognised by their e-mail address in two" || found[1].Why == "" {
			t.Errorf("findings: %+v", found)
		}
	})
}
