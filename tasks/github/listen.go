package github

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Listen registers POST /github/webhook, if there is a webhook secret, and polls. It fails without secret and Poll.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *desk.Desk) error {
	if s.cfg.WebhookSecret == "" && s.cfg.QuickPollEvery == 0 {
		return errors.New("configure GitHub: neither a webhook secret nor polling")
	}
	if s.cfg.WebhookSecret != "" {
		mux.HandleFunc("POST "+hub.HookPath, func(w http.ResponseWriter, r *http.Request) {
			status, response := s.receive(w, r)
			// Plain text for every status: GitHub shows it beside the delivery, where an operator looks first.
			http.Error(w, response, status)
		})
	}
	s.cfg.Inbox.Handle(sourceName, s.interpreter(d).interpret)
	if len(s.cfg.Repositories) > 0 {
		go s.newPoller(d).run(ctx)
	}
	return nil
}

// receive stores a webhook and returns the response.
func (s *Source) receive(w http.ResponseWriter, r *http.Request) (status int, response string) {
	body, status := intake.ReadBody(w, r, intake.MaxEvent)
	switch status {
	case http.StatusOK:
	case http.StatusRequestEntityTooLarge:
		return status, "The body is larger than 1 MiB."
	default:
		return status, "The body could not be read."
	}
	if !s.signed(r.Header.Get("X-Hub-Signature-256"), body) {
		s.inbound.Refused(s.cfg.Now())
		return http.StatusUnauthorized, "X-Hub-Signature-256 is missing or wrong."
	}
	s.inbound.Accepted(s.cfg.Now())
	event := r.Header.Get("X-GitHub-Event")
	body, err := payload(r.Header.Get("Content-Type"), body)
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	if event == "ping" {
		return http.StatusOK, "Webhook is set up."
	}
	var of struct {
		Action string `json:"action"`
	}
	if slices.Contains(hub.Events(), event) && readPayload(body, &of) != nil {
		return http.StatusBadRequest, "The payload is not JSON."
	}
	kind := strings.TrimSpace(event + " " + of.Action)
	if handlers[kind] == nil {
		return http.StatusAccepted, "Ignored: There is nothing to do for " + kind
	}
	err = s.cfg.Inbox.Accept(r.Context(), intake.Event{
		Source: sourceName, Kind: kind, ID: r.Header.Get("X-GitHub-Delivery"), Body: body,
	})
	if err != nil {
		s.log.Error("store webhook", "event", kind, "err", err)
		return http.StatusServiceUnavailable, "The event could not be stored. Redeliver it."
	}
	return http.StatusAccepted, "Stored."
}

// signed checks the SHA-256 signature. go-github picks the hash by the value's prefix and would accept SHA-1 there.
func (s *Source) signed(signature string, body []byte) bool {
	return strings.HasPrefix(signature, "sha256=") &&
		github.ValidateSignature(signature, body, []byte(s.cfg.WebhookSecret)) == nil
}

// payload extracts the JSON from a body. GitHub's settings page proposes the form encoding, so that is supported as
// well.
func payload(contentType string, body []byte) ([]byte, error) {
	switch kind, _, _ := mime.ParseMediaType(contentType); kind {
	case "application/json":
		return body, nil
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("read form: %w", err)
		}
		return []byte(form.Get("payload")), nil
	}
	return nil, errors.New("content type must be application/json")
}
