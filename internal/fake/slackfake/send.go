package slackfake

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// SendOptions says how a request differs from a proper first delivery.
type SendOptions struct {
	Body           []byte        // sent in place of the event, byte for byte
	RetryNum       int           // X-Slack-Retry-Num, if above 0
	RetryReason    string        // X-Slack-Retry-Reason of such a retry; default "http_timeout"
	Age            time.Duration // how far back the timestamp lies; negative is the future. Verifiers allow 5 minutes
	WrongSignature bool          // signed with another secret
	Unsigned       bool          // without signature and timestamp
}

// Send posts an event, signed, to where Deliver said. The event is the whole body (see Envelope) and any JSON value.
// The response is already read: its Body needs no Close. An error means that there was no answer in time, not that it
// was unfriendly.
func (s *Server) Send(ctx context.Context, event any, opt SendOptions) (*http.Response, error) {
	body := opt.Body
	if body == nil {
		var err error
		if body, err = json.Marshal(event); err != nil {
			return nil, fmt.Errorf("send event: %w", err)
		}
	}
	s.mu.Lock()
	to := s.eventURL
	s.mu.Unlock()
	if to == "" {
		return nil, errors.New("send event: no address: call Deliver first")
	}
	resp, err := s.post(ctx, to, "application/json", body, opt)
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	return resp, nil
}

// post makes one signed request to the app. The response is already read.
func (s *Server) post(ctx context.Context, to, kind string, body []byte, opt SendOptions) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	s.dress(req.Header, body, opt)
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(said))
	s.mu.Lock()
	s.notify()
	s.mu.Unlock()
	return resp, nil
}

// dress puts on the headers of Slack's own requests.
func (s *Server) dress(h http.Header, body []byte, opt SendOptions) {
	h.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	if !opt.Unsigned {
		secret := s.cfg.SigningSecret
		if opt.WrongSignature {
			secret += "-not"
		}
		sign(h, secret, time.Now().Add(-opt.Age), body)
	}
	if opt.RetryNum > 0 {
		h.Set("X-Slack-Retry-Num", strconv.Itoa(opt.RetryNum))
		if opt.RetryReason == "" {
			opt.RetryReason = "http_timeout"
		}
		h.Set("X-Slack-Retry-Reason", opt.RetryReason)
	}
}

// sign adds the headers of Slack's signature v0: the HMAC-SHA256 of "v0:<timestamp>:<body>".
func sign(h http.Header, secret string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}
