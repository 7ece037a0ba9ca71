package slack

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	// maxBody is the size of the largest request accepted, in bytes. Slack's own events stay far below.
	maxBody = 1 << 20
	// submitLimit keeps the promise of an answer within 3 s while Redis or Slack hang.
	submitLimit = 2500 * time.Millisecond
	// identityLimit is how much of that time may be used to ask Slack who the bot is.
	identityLimit = time.Second
)

// listener receives events and interactions, by HTTP or over a connection in Socket Mode.
type listener struct {
	secret      string // signs requests
	interpreter *interpreter
	buttons     *buttons
	inbound     *intake.Inbound
	background  *intake.Background // calls that no answer waits for
	pressing    *intake.Background // interactions under way
	limit       time.Duration      // to deal with an event
	now         func() time.Time
	log         *slog.Logger
}

// register adds the routes for requests that are signed with the secret. What is done after an answer ends with life.
func (l *listener) register(life context.Context, mux *http.ServeMux) {
	mux.HandleFunc("POST /slack/events", func(w http.ResponseWriter, r *http.Request) { l.serveEvent(life, w, r) })
	mux.HandleFunc("POST /slack/interactions", func(w http.ResponseWriter, r *http.Request) { l.serveInteraction(life, w, r) })
}

// serveEvent answers a request with an event. 200 means that it is dealt with; after anything else Slack sends it again.
func (l *listener) serveEvent(life context.Context, w http.ResponseWriter, r *http.Request) {
	body, status := l.readSigned(w, r)
	var env envelope
	if status == http.StatusOK && env.read(body) != nil {
		status = http.StatusBadRequest
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	if env.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, env.Challenge)
		return
	}
	// X-Slack-Retry-Num does not matter: the first attempt may have been the one that failed.
	if err := l.handle(r.Context(), life, env); err != nil {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// handle deals with an event in time for Slack's answer. After an error the event must not be acknowledged, so that it comes again.
func (l *listener) handle(ctx, life context.Context, env envelope) error {
	l.inbound.Accepted(l.now())
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	after, err := l.interpreter.interpret(ctx, env)
	if err != nil {
		l.log.Warn("handle event", "event", env.EventID, "err", err)
		return err
	}
	if after != nil {
		l.background.Go(life, after)
	}
	return nil
}

// readSigned reads the body of a request and refuses requests that are not signed by Slack.
func (l *listener) readSigned(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	body, status = intake.ReadBody(w, r, maxBody)
	if status != http.StatusOK {
		return nil, status
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, l.secret) // refuses timestamps that are more than 5 minutes away
	if err == nil {
		_, _ = verifier.Write(body) // a hash does not fail
		err = verifier.Ensure()
	}
	if err != nil {
		l.inbound.Refused(l.now())
		return nil, http.StatusUnauthorized
	}
	return body, http.StatusOK
}

// serveInteraction answers a request with an interaction. Slack does not send it again: it shows the user that it failed.
func (l *listener) serveInteraction(life context.Context, w http.ResponseWriter, r *http.Request) {
	body, status := l.readSigned(w, r)
	if status == http.StatusOK {
		form, err := url.ParseQuery(string(body))
		switch {
		case err != nil || !form.Has("payload"):
			status = http.StatusBadRequest
		case !l.interact(life, []byte(form.Get("payload"))):
			status = http.StatusServiceUnavailable
		}
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.WriteHeader(http.StatusOK) // without a body, which a dialog would show
}

// interact deals with an interaction once Slack has its answer. It returns false if there are too many.
func (l *listener) interact(life context.Context, payload []byte) bool {
	l.inbound.Accepted(l.now())
	var in interaction
	if err := json.Unmarshal(payload, &in); err != nil {
		l.log.Warn("interaction dropped", "err", err) // it would be the same again
		return true
	}
	p, ok := in.press()
	if !ok {
		return true
	}
	do := l.buttons.handler(p)
	return do == nil || l.pressing.Go(life, do)
}
