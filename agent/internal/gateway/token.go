package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"
)

// Pauses between fetches that change nothing.
const (
	failurePause = 30 * time.Second // after an error, which is the answer for all requests meanwhile if there is no token
	refusedPause = 5 * time.Second  // after a fetch because a token was refused
)

// signer adds to requests what a gateway between errand and the model wants: headers of its own, and a token that changes.
type signer struct {
	next    http.RoundTripper
	headers http.Header
	fetch   func(context.Context) (string, error) // nil: the credential does not change
	life    time.Duration                         // of a token
	log     *slog.Logger

	turn     chan struct{} // full while one goroutine uses the fields below, also during a fetch, so that all requests wait for one
	token    string
	err      error     // of the last fetch, if there is no token
	until    time.Time // when a fetch is due
	replaced time.Time // when a token was last fetched because one was refused
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
		if token, err = s.current(req.Context(), ""); err != nil {
			return nil, "", err
		}
		// Gateways look for either. The CLI sends both, says its documentation of apiKeyHelper.
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Api-Key", token)
	}
	res, err = s.next.RoundTrip(req)
	return res, token, err
}

// current returns the token, which it fetches if it is too old or is the refused one, unless that is "". If a fetch fails, the
// old token may still be accepted.
func (s *signer) current(ctx context.Context, refused string) (string, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	replace := refused != "" && s.token == refused && time.Since(s.replaced) >= refusedPause
	if !replace && time.Now().Before(s.until) {
		return s.token, s.err
	}
	token, err := s.fetch(ctx)
	if err == nil && token == "" {
		err = errors.New("the token is empty")
	}
	if err != nil && ctx.Err() != nil { // which is no reason for other requests to fail
		return "", err
	}
	if replace {
		s.replaced = time.Now()
	}
	switch {
	case err == nil:
		s.token, s.err, s.until = token, nil, time.Now().Add(s.life)
	case s.token == "":
		s.log.Warn("get a token for the model", "err", err)
		s.err, s.until = err, time.Now().Add(failurePause)
	default:
		s.log.Warn("get a token for the model; the last one is used", "err", err)
		s.until = time.Now().Add(failurePause)
	}
	return s.token, s.err
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
