package egress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/fetch"
)

// Bounds of the tokens of container registries.
const (
	maxTokens   = 100              // that are kept for later requests; each is for one repository
	tokenLife   = 60 * time.Second // of a token whose answer does not say it, as in the protocol
	maxLife     = 24 * time.Hour   // of any token
	tokenMargin = 10 * time.Second // how long before its end a token is no longer used
	failureLife = 10 * time.Second // how long the error of such a request is the answer to others
)

// tokens is a transport to one registry that answers challenges for a token, as container registries make them
// (distribution.github.io/distribution/spec/auth/token). The run gets no token: it would be a credential, too.
type tokens struct {
	base http.RoundTripper
	reg  *Registry

	secrets hidden // of reg
	mu      sync.Mutex
	kept    map[string]*fetch.Shared[string] // by the URL that gives them
	realms  map[string]bool                  // the paths of reg that challenges have named
}

// challengeParameter matches one parameter of a challenge, such as scope="repository:acme/api:pull".
var challengeParameter = regexp.MustCompile(`(\w+)="([^"]*)"`)

// RoundTrip sends a request with the credential. If the registry wants a token instead, it fetches one with the
// credential and sends the request again.
func (c *tokens) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := c.base.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusUnauthorized || req.ContentLength != 0 {
		return res, err
	}
	scheme, list, _ := strings.Cut(res.Header.Get("WWW-Authenticate"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return res, nil
	}
	wants := map[string]string{}
	for _, m := range challengeParameter.FindAllStringSubmatch(list, -1) {
		wants[strings.ToLower(m[1])] = m[2]
	}
	if wants["realm"] == "" {
		return res, nil
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxChecked) // so that the connection is used again
	_ = res.Body.Close()
	value, err := c.token(req, wants)
	if err != nil {
		return nil, fmt.Errorf("get a token for it: %w", err)
	}
	again := req.Clone(req.Context())
	again.Header.Set("Authorization", "Bearer "+value)
	if res, err = c.base.RoundTrip(again); err != nil {
		return nil, err
	}
	if err := checkAnswer(res, newHidden(value)); err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	return res, nil
}

// token returns the token that a challenge asks for.
func (c *tokens) token(req *http.Request, wants map[string]string) (string, error) {
	realm, err := url.Parse(wants["realm"])
	if err != nil || realm.Scheme != "https" {
		return "", errors.New("its realm is not an https URL")
	}
	at := target{strings.ToLower(realm.Hostname()), cmp.Or(realm.Port(), "443")}
	name := strings.TrimSuffix(at.address(), ":443") // as in Registry.Realm
	switch {
	case at == target{c.reg.Host, c.reg.Port}:
		c.addRealm(realm.Path)
	case name != c.reg.Realm:
		return "", fmt.Errorf("its realm is %s; set realm: %s if the credential is for that, too", name, name)
	}
	query := realm.Query()
	for _, name := range []string{"service", "scope"} {
		if wants[name] != "" {
			query.Set(name, wants[name])
		}
	}
	realm.RawQuery = query.Encode()
	return c.shared(req.Context(), realm.String())
}

// shared returns the token of a URL that is kept, or fetches it.
func (c *tokens) shared(ctx context.Context, from string) (string, error) {
	c.mu.Lock()
	one := c.kept[from]
	if one == nil {
		if len(c.kept) >= maxTokens || c.kept == nil {
			c.kept = map[string]*fetch.Shared[string]{}
		}
		one = &fetch.Shared[string]{Get: func(ctx context.Context) (string, time.Duration, error) {
			return c.fetch(ctx, from)
		}}
		c.kept[from] = one
	}
	c.mu.Unlock()
	return one.Wait(ctx)
}

// fetch gets a token with the credential. It also returns how long the result can be used.
func (c *tokens) fetch(ctx context.Context, from string) (value string, life time.Duration, err error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", failureLife, err
	}
	ask.Header.Set("Authorization", c.reg.Credential)
	res, err := c.base.RoundTrip(ask)
	if err != nil {
		return "", failureLife, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxChecked))
	if err != nil {
		return "", failureLife, err
	}
	value, life = readToken(body)
	if res.StatusCode != http.StatusOK || value == "" {
		return "", failureLife, fmt.Errorf("%s answers with status %d and no token", ask.URL.Host, res.StatusCode)
	}
	return value, life - tokenMargin, nil
}

// addRealm records a path of the registry that gives tokens.
func (c *tokens) addRealm(p string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.realms == nil {
		c.realms = map[string]bool{}
	}
	c.realms[normalPath(p)] = true
}

// isRealm reports whether a challenge has named a path of the registry as one that gives tokens.
func (c *tokens) isRealm(p string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.realms[normalPath(p)]
}

// normalPath returns one form of the paths that a server may take for the same one.
func normalPath(p string) string { return strings.ToLower(path.Clean("/" + p)) }

// readToken returns the token in an answer of a realm, or "" if it is another answer.
func readToken(body []byte) (value string, life time.Duration) {
	var answer struct {
		Token       string          `json:"token"`
		AccessToken string          `json:"access_token"`
		ExpiresIn   json.RawMessage `json:"expires_in"` // seconds, for some servers in quotes or with a fraction
	}
	_ = json.Unmarshal(body, &answer) // reads what it can
	life = tokenLife
	if seconds, err := strconv.ParseFloat(strings.Trim(string(answer.ExpiresIn), `"`), 64); err == nil && seconds > 0 {
		life = time.Duration(min(seconds, maxLife.Seconds()) * float64(time.Second))
	}
	return cmp.Or(answer.Token, answer.AccessToken), life
}

// tokenFields are the fields of a JSON object that have a token.
var tokenFields = []string{"token", "access_token", "refresh_token"}

// holdsToken reports whether an answer, of which the end may be missing, is a JSON object with a field for a token. The
// value does not matter.
func holdsToken(begin []byte) bool {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(begin, []byte("\ufeff"))))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return false
	}
	for {
		name, err := d.Token()
		field, ok := name.(string)
		if err != nil || !ok { // the end of the object, or of what is there
			return false
		}
		if slices.ContainsFunc(tokenFields, func(f string) bool { return strings.EqualFold(f, field) }) {
			return true
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
	}
}
