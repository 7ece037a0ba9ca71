package slackfake_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// A call that the types of Slack's SDK do not allow is refused, and is a breach that Close does not overlook.
func TestContract(t *testing.T) {
	t.Parallel()
	s := slackfake.New(slackfake.Config{})
	t.Cleanup(s.Close)
	for name, tc := range map[string]struct {
		method string
		form   url.Values
		want   string
	}{
		"unknown": {
			"chat.postMessage",
			url.Values{"channel": {"C0GENERAL"}, "text": {"x"}, "colour": {"red"}},
			"/colour: no such field",
		},
		"wrong type": {"chat.postMessage", url.Values{
			"channel": {"C0GENERAL"}, "text": {"x"}, "unfurl_links": {"perhaps"},
		}, `/unfurl_links: "perhaps" is not`},
		"unknown block": {"chat.postMessage", url.Values{
			"channel": {"C0GENERAL"}, "text": {"x"}, "blocks": {`[{"type": "divider", "colour": "red"}]`},
		}, "/blocks: "},
	} {
		tc.form.Set("token", "xoxb-test")
		resp, err := http.PostForm(s.APIURL()+tc.method, tc.form)
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Error string }
		if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if all := s.Breaches(); said.Error != "invalid_arguments" || len(all) != 1 ||
			!strings.Contains(all[0], tc.want) {
			t.Errorf("%s: error %q, breaches %q, want %q", name, said.Error, all, tc.want)
		}
	}
	if _, err := http.PostForm(s.APIURL()+"auth.test",
		url.Values{"token": {"xoxb-test"}, "colour": {"red"}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "/colour: no such field") {
			t.Errorf("Close panicked with %q", said)
		}
	}()
	s.Close()
}
