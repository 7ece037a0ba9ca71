package slack

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// maxBody bounds a request. Slack's own events stay far below.
const maxBody = 1 << 20

// identityLimit is what of the time for an answer may go into learning who we are.
const identityLimit = time.Second

// Listen registers POST /slack/events and /slack/interactions and connects in Socket Mode, each if it is configured. What is done after an
// answer ends with ctx, and so does the connection.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *tasks.Desk) error {
	if s.cfg.SigningSecret != "" {
		mux.HandleFunc("POST /slack/events", func(w http.ResponseWriter, r *http.Request) { s.serve(ctx, d, w, r) })
		mux.HandleFunc("POST /slack/interactions", func(w http.ResponseWriter, r *http.Request) { s.serveInteraction(ctx, d, w, r) })
	}
	if s.cfg.AppToken != "" {
		go s.keepConnected(ctx, d)
	}
	if s.cfg.Shelf != nil {
		go s.startDue(ctx, d)
	}
	return nil
}

// serve answers one request. 200 means that it is dealt with; anything else lets Slack send it again.
func (s *Source) serve(life context.Context, d *tasks.Desk, w http.ResponseWriter, r *http.Request) {
	env, status := s.read(w, r)
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	if env.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, env.Challenge)
		return
	}
	// X-Slack-Retry-Num is not looked at: the first attempt may have been the one that failed.
	if err := s.handle(r.Context(), life, d, env); err != nil {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// handle deals with an event, whatever way it came, in time for Slack's answer. After an error it must come again: it is then not to be
// answered, or not to be acked.
func (s *Source) handle(ctx, life context.Context, d *tasks.Desk, env envelope) error {
	s.inbound.Accepted(s.cfg.Now())
	ctx, cancel := context.WithTimeout(ctx, s.submitLimit)
	defer cancel()
	after, err := s.take(ctx, d, env)
	if err != nil {
		s.log.Warn("take event", "event", env.EventID, "err", err)
		return err
	}
	if after != nil {
		s.background.Go(life, after)
	}
	return nil
}

// read takes an event out of a request of Slack's.
func (s *Source) read(w http.ResponseWriter, r *http.Request) (env envelope, status int) {
	body, status := s.signed(w, r)
	if status == http.StatusOK && env.read(body) != nil {
		status = http.StatusBadRequest
	}
	return env, status
}

// signed lets only Slack's requests through, those to prove the address included.
func (s *Source) signed(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	body, status = intake.ReadBody(w, r, maxBody)
	if status != http.StatusOK {
		return nil, status
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, s.cfg.SigningSecret) // it refuses what is older or newer than 5 minutes
	if err == nil {
		_, _ = verifier.Write(body) // a hash takes everything
		err = verifier.Ensure()
	}
	if err != nil {
		s.inbound.Refused(s.cfg.Now())
		return nil, http.StatusUnauthorized
	}
	return body, http.StatusOK
}

// us is who we are as a message may mean us, zero if nobody can be meant. While Slack does not say who we are, an app_mention tells it; of
// another mention we cannot know, and need not: its app_mention comes as well.
func (s *Source) us(ctx context.Context, env envelope, ev event) (who, error) {
	named := strings.Contains(ev.Text, "<@")
	if !named && !ev.direct() && ev.ThreadTS == "" {
		return who{}, nil // most messages: nobody has to be asked
	}
	if me, ok := s.me.known(); ok {
		return me, nil // without a clock for each message
	}
	ctx, cancel := context.WithTimeout(ctx, identityLimit)
	defer cancel()
	me, err := s.me.get(ctx)
	if err == nil {
		return me, nil
	}
	switch told := env.us(); {
	case ev.Type == appMention && told.user != "":
		return told, nil
	case named && ev.Type != appMention && !ev.direct():
		return who{}, nil
	}
	return who{}, err
}
