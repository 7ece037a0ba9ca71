package egress

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Bounds of the tokens of container registries.
const (
	maxTokens   = 100              // that are kept for later requests; each is for one repository
	tokenLife   = 60 * time.Second // of a token whose answer does not say it, as in the protocol
	tokenMargin = 10 * time.Second // how long before its end a token is no longer used
)

// tokens is a transport to one registry that answers challenges for a token, as container registries make them
// (distribution.github.io/distribution/spec/auth/token). The run gets no token: it would be a credential, too.
type tokens struct {
	base http.RoundTripper
	reg  *Registry

	mu   sync.Mutex
	kept map[string]token // by the URL that gives them
}

type token struct {
	value string
	until time.Time
}

// challengeParameter matches one parameter of a challenge, such as scope="repository:acme/api:pull".
var challengeParameter = regexp.MustCompile(`(\w+)="([^"]*)"`)

// RoundTrip sends a request with the credential. If the registry wants a token instead, it fetches one with the credential
// and sends the request again.
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
	if err := checkAnswer(res, []string{value}); err != nil {
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
	if at != (target{c.reg.Host, c.reg.Port}) && at.String() != c.reg.Realm {
		return "", fmt.Errorf("its realm is %s; set realm: %s if the credential is for that, too", at, at)
	}
	query := realm.Query()
	for _, name := range []string{"service", "scope"} {
		if wants[name] != "" {
			query.Set(name, wants[name])
		}
	}
	realm.RawQuery = query.Encode()
	key := realm.String()
	c.mu.Lock()
	defer c.mu.Unlock() // requests that come together share a token
	if one := c.kept[key]; time.Now().Before(one.until) {
		return one.value, nil
	}
	ask, err := http.NewRequestWithContext(req.Context(), http.MethodGet, key, nil)
	if err != nil {
		return "", err
	}
	ask.Header.Set("Authorization", c.reg.Credential)
	res, err := c.base.RoundTrip(ask)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxChecked))
	if err != nil {
		return "", err
	}
	value, life := readToken(body)
	if res.StatusCode != http.StatusOK || value == "" {
		return "", fmt.Errorf("%s answers with status %d and no token", realm.Host, res.StatusCode)
	}
	if len(c.kept) >= maxTokens || c.kept == nil {
		c.kept = map[string]token{}
	}
	c.kept[key] = token{value, time.Now().Add(life - tokenMargin)}
	return value, nil
}

// readToken returns the token in an answer of a realm, or "" if it is another answer.
func readToken(body []byte) (value string, life time.Duration) {
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"` // seconds
	}
	if json.Unmarshal(body, &answer) != nil {
		return "", 0
	}
	return cmp.Or(answer.Token, answer.AccessToken), cmp.Or(time.Duration(answer.ExpiresIn)*time.Second, tokenLife)
}
