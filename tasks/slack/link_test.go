package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/rights"
)

// An offer says what is known of the person: the URL of errand's own workspace is not that of another one, and without
// a name there is no offer.
func TestOfferOfALink(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{LinkURL: "https://errand.test/link", Access: Access{People: []string{ann, bob, "U0THEIRS"}}},
		rights.Policy{}, slackfake.Config{Users: []slackfake.User{{ID: "U0THEIRS", TeamID: "T0OTHER"}}})
	me, err := f.source.me.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string][2]string{ann: {team, me.site}, "U0THEIRS": {"T0OTHER", ""}} {
		said, err := f.source.listener.interpreter.link(t.Context(), origin{Channel: general, User: who})
		_, code, ok := strings.Cut(said, "?code=")
		if err != nil || !ok {
			t.Fatalf("%q, %v", said, err)
		}
		body, err := f.store.Logins.Read(t.Context(), people.OfferHash(code))
		var offer people.Link
		if err == nil {
			err = json.Unmarshal(body, &offer)
		}
		if err != nil || offer.Team != want[0] || offer.Site != want[1] || offer.Name == "" {
			t.Errorf("for %s: %+v, %v", who, offer, err)
		}
	}
	f.Fail("users.info", slackfake.Failure{Times: -1, Error: "internal_error"})
	if said, err := f.source.listener.interpreter.link(t.Context(),
		origin{Channel: general, User: bob}); said != tryLater || err != nil {
		t.Errorf("without a name: %q, %v", said, err)
	}
}
