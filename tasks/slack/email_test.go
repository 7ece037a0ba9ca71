package slack

import (
	"slices"
	"testing"

	"github.com/errand-fleet/errand/internal/slackfake"
)

// Only the confirmed address of a full member of the app's own workspace counts, and only with the scope to see it.
func TestEmail(t *testing.T) {
	t.Parallel()
	const address = "ann@acme.test"
	users := []slackfake.User{
		{ID: "U0MEMBER"},
		{ID: "U0NEW", Unproven: true},
		{ID: "U0GUEST", Guest: true},
		{ID: "U0ONE", OneGuest: true},
		{ID: "U0GONE", Deleted: true},
		{ID: "U0BOT", Bot: true},
		{ID: "U0OTHER", TeamID: "T0OTHER"},
		{ID: "U0SISTER", TeamID: "T0SISTER", Org: "E0ACME"},
	}
	for i := range users {
		users[i].Email = address
	}
	email := func(w *workspace, user string) string {
		t.Helper()
		got, err := w.source.Email(t.Context(), user)
		if err != nil {
			t.Errorf("%s: %v", user, err)
		}
		return got
	}
	w := newWorkspace(t, Config{}, slackfake.Config{Users: users, Org: "E0ACME"})
	for _, u := range users {
		want := ""
		if u.ID == "U0MEMBER" {
			want = address
		}
		equal(t, u.ID, email(w, u.ID), want)
	}
	equal(t, "without an address", email(w, ann), "")

	w = newWorkspace(t, Config{Emails: true}, slackfake.Config{Users: users, Scopes: names(scopes())})
	equal(t, "without the scope", email(w, "U0MEMBER"), "")
	equal(t, "findings", wrongs(w.source.Diagnose(t.Context())),
		[]string{"Slack: the app lacks the scope users:read.email"})
	w = newWorkspace(t, Config{Emails: true}, slackfake.Config{
		Users: users, Scopes: slices.Concat(names(scopes()), []string{"users:read.email"}),
	})
	equal(t, "with the scope", email(w, "U0MEMBER"), address)
	equal(t, "findings", wrongs(w.source.Diagnose(t.Context())), []string(nil))

	w.Fail("users.info", slackfake.Failure{Error: "internal_error"})
	if got, err := w.source.Email(t.Context(), "U0NEW"); got != "" || err == nil {
		t.Errorf("while Slack does not answer: %q, %v", got, err)
	}
}
