package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/internal/cache"
)

const (
	tokenLife  = 5 * time.Minute  // how long a token is used that nobody refuses
	fetchLimit = 30 * time.Second // how long fetching one may take
)

// Pauses between fetches that change nothing.
const (
	failurePause = 30 * time.Second // after an error; without a token, requests get this error meanwhile
	refusedPause = 5 * time.Second  // after a fetch because a token was refused
)

// signer adds to requests what a gateway between errand and the model wants: its own headers, and a token that changes.
type signer struct {
	next    http.RoundTripper
	headers http.Header
	fetch   func(context.Context) (string, error) // nil: the credential does not change

	tokens   cache.Cache[string]
	last     atomic.Pointer[string] // the last token; nil: there was none
	replaced time.Time              // when one was last fetched because it was refused; used by the function for Drop
}

// newSigner returns the transport that a credential and a configuration want in front of another one.
func newSigner(next http.RoundTripper, c Named, cfg Config) *signer {
	s := &signer{next: next, headers: cfg.Headers}
	if c.Token == nil {
		return s
	}
	s.tokens.Limit, s.tokens.Life, s.tokens.ErrorLife, s.tokens.Now = fetchLimit, tokenLife, failurePause, time.Now
	s.fetch = func(ctx context.Context) (string, error) {
		token, err := c.Token(ctx)
		if err == nil && token == "" {
			err = errors.New("the token is empty")
		}
		if err == nil {
			s.last.Store(&token)
			return token, nil
		}
		cfg.Log.Warn("get a token for the model; the last one is used, if there is one", "err", err)
		return "", err
	}
	return s
}

// RoundTrip sends a request. If its token is refused, it fetches another one and tries once more.
func (s *signer) RoundTrip(req *http.Request) (*http.Response, error) {
	res, used, err := s.send(req)
	if err != nil || s.fetch == nil || res.StatusCode != http.StatusUnauthorized || req.GetBody == nil {
		return res, err
	}
	if fresh, err := s.current(req.Context(), used); err != nil || fresh == used {
		return res, nil //nolint:nilerr // the answer says what is wrong
	}
	body, err := req.GetBody()
	if err != nil {
		return res, nil //nolint:nilerr // likewise
	}
	_ = res.Body.Close()
	again := req.Clone(req.Context())
	again.Body = body
	res, _, err = s.send(again)
	return res, err
}

// send sends a request with a token that is valid as far as is known.
func (s *signer) send(req *http.Request) (res *http.Response, token string, err error) {
	req = req.Clone(req.Context())
	maps.Copy(req.Header, s.headers)
	if s.fetch != nil {
		if token, err = s.current(req.Context(), ""); err != nil && req.Context().Err() != nil {
			return nil, "", err
		}
		if err != nil {
			const message = "The command that prints a token for the model fails. The worker's log says why."
			return refusal(req, http.StatusUnauthorized, "authentication_error", message), "", nil //nolint:nilerr // the answer holds the credential, and the CLI does not ask again
		}
		// Gateways look for either. The CLI sends both, says its documentation of apiKeyHelper.
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Api-Key", token)
	}
	res, err = s.next.RoundTrip(req)
	return res, token, err
}

// current returns the token, which is fetched if it is too old or is the refused one, unless that is "". While that
// fails, it is the last one, which may still be accepted.
func (s *signer) current(ctx context.Context, refused string) (string, error) {
	s.tokens.Drop("", func(token string) bool {
		replace := token == refused && time.Since(s.replaced) >= refusedPause
		if replace {
			s.replaced = time.Now()
		}
		return replace
	})
	token, err := s.tokens.Get(ctx, "", s.fetch)
	if last := s.last.Load(); err != nil && last != nil && ctx.Err() == nil {
		return *last, nil
	}
	return token, err
}

// withClientCertificate makes a transport show the certificate that the CLI would show, by the same variables.
func withClientCertificate(t *http.Transport, getenv func(string) string) error {
	cert, key := getenv("CLAUDE_CODE_CLIENT_CERT"), getenv("CLAUDE_CODE_CLIENT_KEY")
	if cert == "" && key == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("read CLAUDE_CODE_CLIENT_CERT and CLAUDE_CODE_CLIENT_KEY: %w", err)
	}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	return nil
}
