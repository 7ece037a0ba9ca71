package egress

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// No answer with a token reaches the run, whatever else is in it and however long it is. Other answers do.
func TestAnswersWithTokens(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2*maxChecked)
	for body, withheld := range map[string]bool{
		`{"token":"t","expires_in":300}`:                          true,
		`{"token":"` + long + `","expires_in":300}`:               true, // is cut where it is checked
		`{"issued_at":"now","scopes":["a"],"token":"` + long:      true,
		`{"token":"t","expires_in":"3599"}`:                       true,
		`{"token":"t","expires_in":300.0}`:                        true,
		`{"token":["t"]}`:                                         true,
		`{"expires_in":{},"access_token":"t"}`:                    true,
		`{"refresh_token":"t"}`:                                   true,
		`{"Access_Token":"t"}`:                                    true,
		`{"\u0074oken":"t"}`:                                      true,
		"\ufeff \n" + `{"token":"t"}`:                             true,
		`{"token":"t"} and more`:                                  true,
		`{"name":"pad","dependencies":{"token":"^1"},"n":1}`:      false,
		`{"name":"token","keywords":["token"],"readme":"` + long:  false,
		`{"name":"pad","readme":"` + long + `","dist":{"token":1`: false,
		`["token"]`: false,
		`"token"`:   false,
		`token=`:    false,
		``:          false,
		`{`:         false,
	} {
		res := answer(http.StatusOK, body)
		err := checkAnswer(res, hidden{})
		if (err != nil) != withheld {
			t.Errorf("%.80s: %v", body, err)
		}
		if rest, _ := io.ReadAll(res.Body); err == nil && string(rest) != body {
			t.Errorf("%.80s: passed on as %.80s", body, rest)
		}
	}
	res := answer(http.StatusOK, "compressed")
	res.Header["Content-Encoding"] = []string{"", "gzip"}
	if checkAnswer(res, hidden{}) == nil {
		t.Error("a compressed answer passes")
	}
}

// A registry that wants a token in exchange for its credential is named as such. Other refusals reach the run.
func TestAnswersThatWantAToken(t *testing.T) {
	t.Parallel()
	for value, wants := range map[string]bool{
		`Bearer realm="https://images.example/token",service="images"`: true,
		`bearer scope="a", Realm=https://images.example/token`:         true,
		`Bearer realm="packages"`:                                      false,
		`Basic realm="https://images.example"`:                         false,
		`Bearer`:                                                       false,
		// Azure DevOps, when the credential is wrong.
		`Bearer authorization_uri=https://login.example/t, Basic realm="https://pkgs.example/", TFS-Federated`: false,
	} {
		res := answer(http.StatusUnauthorized, "no")
		res.Header.Set("WWW-Authenticate", value)
		err := checkAnswer(res, hidden{})
		if (err != nil) != wants || wants && !strings.Contains(err.Error(), "wants a token in exchange for its credential") {
			t.Errorf("%s: %v", value, err)
		}
		if res.StatusCode = http.StatusOK; checkAnswer(res, hidden{}) != nil {
			t.Errorf("%s: an answer with status 200 is withheld", value)
		}
	}
}

// No part of an answer shows the credential, in none of its forms.
func TestAnswersShowNoCredential(t *testing.T) {
	t.Parallel()
	const secret = "s3cret/ of a registry"
	long := strings.Repeat("x", maxChecked-5)
	for _, form := range redact.Forms(secret) {
		for place, text := range map[string]string{"begin": form, "bound": long + form, "end": long + long + form} {
			res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text + "."))}
			err := checkAnswer(res, newHidden(secret))
			var passed []byte
			if err == nil {
				passed, err = io.ReadAll(res.Body)
			}
			if !errors.Is(err, errShown) || strings.Trim(string(passed), "x") != "" {
				t.Errorf("%s at the %s: %v, %d bytes passed", form, place, err, len(passed))
			}
		}
		res := &http.Response{Header: http.Header{"X": {form}}, Body: http.NoBody}
		if err := checkAnswer(res, newHidden(secret)); !errors.Is(err, errShown) {
			t.Errorf("%s in a header: %v", form, err)
		}
	}
	text := long + long + "s3cret, but not all of it"
	res := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}
	if err := checkAnswer(res, newHidden(secret)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d passed, %v", len(got), len(text), err)
	}
}
