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
	f := newFrontDoor(t, Config{LinkURL: "https://errand.test/link", Access: Access{People: []string{ann, bob}}},
		rights.Policy{})
	me, err := f.source.me.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for in, site := range map[string]string{team: me.site, "T0OTHER": ""} {
		said, err := f.source.listener.interpreter.link(t.Context(), origin{Team: in, Channel: general, User: ann})
		_, code, ok := strings.Cut(said, "?code=")
		if err != nil || !ok {
			t.Fatalf("%q, %v", said, err)
		}
		body, err := f.store.Logins.Read(t.Context(), people.OfferHash(code))
		var offer people.Link
		if err == nil {
			err = json.Unmarshal(body, &offer)
		}
		if err != nil || offer.Team != in || offer.Site != site || offer.Name == "" {
			t.Errorf("in %s: %+v, %v", in, offer, err)
		}
	}
	f.Fail("users.info", slackfake.Failure{Times: -1, Error: "internal_error"})
	if said, err := f.source.listener.interpreter.link(t.Context(),
		origin{Team: team, Channel: general, User: bob}); said != tryLater || err != nil {
		t.Errorf("without a name: %q, %v", said, err)
	}
}
