package github

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	// maxBody is GitHub's own bound on a payload. Few payloads are large, and maxLarge of these are read at a time.
	maxBody  = 25 << 20
	maxLarge = 4
)

// patience is how long an answer to a webhook waits. Only tests change it.
type patience struct {
	answer time.Duration // for everything, so that it is sent within 3 s
	lookup time.Duration // for errand's login, or for what an account may do; an event looks up at most two of these
}

var defaultPatience = patience{answer: 2500 * time.Millisecond, lookup: 700 * time.Millisecond}

// Listen registers POST /github/webhook, if there is a webhook secret, and polls. It fails without secret and Poll.
// Work that continues after an answer ends with ctx.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *tasks.Desk) error {
	switch {
	case s.cfg.WebhookSecret != "":
		background := intake.NewBackground(s.log)
		after := func(do func(context.Context)) { background.Go(ctx, do) }
		mux.HandleFunc("POST "+hub.HookPath, func(w http.ResponseWriter, r *http.Request) {
			defer s.large.Bound(r)()
			status, response := s.receive(w, r, d, after)
			// Plain text for every status: GitHub shows it beside the delivery, where an operator looks first.
			http.Error(w, response, status)
		})
	case s.cfg.QuickPollEvery == 0:
		return errors.New("configure GitHub: neither a webhook secret nor polling")
	}
	if len(s.cfg.Repositories) > 0 {
		go s.newPoller(d).run(ctx)
	}
	return nil
}

// receive turns a webhook into a task and returns the response.
func (s *Source) receive(
	w http.ResponseWriter, r *http.Request, d *tasks.Desk, after func(func(context.Context)),
) (status int, response string) {
	body, status := intake.ReadBody(w, r, maxBody)
	switch status {
	case http.StatusOK:
	case http.StatusRequestEntityTooLarge:
		return status, "The body is larger than 25 MiB."
	case http.StatusServiceUnavailable:
		return status, "Other large bodies are being read. Redeliver the event."
	default:
		return status, "The body could not be read."
	}
	if !s.signed(r.Header.Get("X-Hub-Signature-256"), body) {
		s.inbound.Refused(s.cfg.Now())
		return http.StatusUnauthorized, "X-Hub-Signature-256 is missing or wrong."
	}
	s.inbound.Accepted(s.cfg.Now())
	in := delivery{id: r.Header.Get("X-GitHub-Delivery"), event: r.Header.Get("X-GitHub-Event"), after: after}
	var err error
	if in.payload, err = payload(r.Header.Get("Content-Type"), body); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	if in.event == "ping" {
		return http.StatusOK, "Webhook is set up."
	}
	log := s.log.With("delivery", in.id, "event", in.event)

	ctx, cancel := context.WithTimeout(r.Context(), s.gate.api.patience.answer)
	defer cancel()
	response, err = tasks.Await(ctx, func() (string, error) { return s.interpreter(d).act(ctx, in) })
	if why, ok := errors.AsType[ignored](err); ok {
		log.Log(ctx, why.level, "webhook ignored", "why", why.why)
		return http.StatusAccepted, "Ignored: " + why.why
	}
	if _, ok := errors.AsType[unreadable](err); ok {
		log.Warn("read webhook", "err", err)
		return http.StatusBadRequest, "The payload does not match the event."
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		log.Warn("webhook refused", "why", input.Sentence)
		return http.StatusAccepted, "Refused: " + input.Sentence
	}
	if err != nil {
		log.Error("handle webhook", "err", err)
		return http.StatusServiceUnavailable, "The event could not be stored. Redeliver it."
	}
	return http.StatusAccepted, response
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

// Inbound returns when the last webhook from GitHub arrived, or zero. There is no connection that could be lost.
func (s *Source) Inbound() (last time.Time, err error) { return s.inbound.Last(), nil }

// Diagnose reports how GitHub is configured, and whether webhooks arrive.
func (s *Source) Diagnose(ctx context.Context) []doctor.Finding {
	list := s.forge.Diagnose(ctx)
	if s.inbound.LastRefused() {
		list = append(list, doctor.Finding{
			What: "GitHub: the last webhook had a wrong signature", Why: "If GitHub sent it, no event is accepted.",
			Remedy: "Compare GITHUB_WEBHOOK_SECRET with the secret of the webhook.",
		})
	}
	return list
}
