package automation

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	// maxBody bounds a request.
	maxBody = 256 << 10
	// maxSkew is how far the timestamp of a request may be from now.
	maxSkew = 5 * time.Minute
	// patience bounds what a response waits for while Redis hangs.
	patience = 2500 * time.Millisecond
	// keyLife is how long the requests with one key are one, after the first became a task.
	keyLife = 24 * time.Hour
)

// defaultPerHour is the rate of a hook that names none.
const defaultPerHour = 60

// Prefix begins the paths of all hooks, whose requests are signed.
const Prefix = "/hooks/"

// endpoint is a hook with what it needs to receive requests.
type endpoint struct {
	Automation
	source   *Source
	template *template.Template
}

func (s *Source) endpoint(a Automation) (*endpoint, error) {
	a.PerHour = cmp.Or(a.PerHour, defaultPerHour)
	t, err := parse(a.Name, a.Prompt)
	if err != nil {
		return nil, fmt.Errorf("read template of hook %s: %w", a.Name, err)
	}
	return &endpoint{Automation: a, source: s, template: t}, nil
}

func fail(status int, detail string) error {
	return intake.NewProblem(status, http.StatusText(status), detail)
}

// accepted is the response to a request. Its status is 200, because Linear repeats a request after any other.
type accepted struct {
	Stored bool `json:"stored"` // false: the template has made nothing of the request
}

// serve stores a request and answers it.
func (s *Source) serve(w http.ResponseWriter, r *http.Request, d *desk.Desk) {
	stored, err := s.receive(w, r, d)
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(accepted{stored}) // the sender may be gone
		return
	}
	p, ok := errors.AsType[*intake.Problem](err)
	if !ok {
		s.cfg.Log.Warn("receive hook", "err", err)
		p = intake.NewProblem(http.StatusServiceUnavailable, "Unavailable",
			"Redis does not answer. Send the request again, with the same Idempotency-Key.")
	}
	p.Write(w)
}

func (s *Source) receive(w http.ResponseWriter, r *http.Request, d *desk.Desk) (stored bool, err error) {
	body, status := intake.ReadBody(w, r, maxBody)
	switch status {
	case http.StatusOK:
	case http.StatusRequestEntityTooLarge:
		return false, fail(status, fmt.Sprintf("A request has at most %d bytes.", maxBody))
	default:
		return false, fail(status, "The body could not be read.")
	}
	e := s.hooks[r.PathValue("name")]
	var signature string
	if e != nil {
		signature = e.verified(r.Header, body)
	}
	if signature == "" { // the response does not tell which hooks there are
		if e != nil {
			s.cfg.Log.Warn("hook refused: its signature, secret or timestamp is missing or wrong", "hook", e.Name)
		}
		return false, fail(http.StatusUnauthorized,
			"There is no such hook, or the signature, the secret or the timestamp is missing or wrong.")
	}
	key, err := keyOf(r.Header, signature)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	return e.accept(ctx, d, key, body)
}

// The headers in which other services send the ID that the repetitions of a request have.
const (
	jiraDelivery   = "X-Atlassian-Webhook-Identifier"
	linearDelivery = "Linear-Delivery"
)

// carries reports whether some header of a request has an HMAC, in hexadecimal or base64, alone or among values with
// names, such as sha256=. Each service has a header of its own for it, and nobody can guess it.
func carries(h http.Header, mac []byte) bool {
	for _, values := range h {
		for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
			_, named, _ := strings.Cut(part, "=")
			for _, value := range []string{strings.TrimSpace(part), named} {
				asHex, _ := hex.DecodeString(value)
				asBase64, _ := base64.StdEncoding.DecodeString(value)
				if hmac.Equal(asHex, mac) || hmac.Equal(asBase64, mac) {
					return true
				}
			}
		}
	}
	return false
}

// verified returns the HMAC of a request in hexadecimal if the request has it, or the secret itself, and its
// timestamps, if any, are recent; or else nothing.
func (e *endpoint) verified(h http.Header, body []byte) string {
	own := intake.Digest(h, e.Secret, body)
	scheme, given, _ := strings.Cut(h.Get("Authorization"), " ")
	bearer := strings.EqualFold(scheme, "Bearer") && hmac.Equal([]byte(given), []byte(e.Secret))
	if e.Secret == "" || !bearer && !carries(h, own) {
		return ""
	}
	if stamp := h.Get(intake.TimestampHeader); stamp != "" {
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || !e.recent(time.Unix(seconds, 0)) {
			return ""
		}
	}
	// Linear's is in the body. It counts whatever the header of the signature is called, because nothing verifies that.
	var linear struct{ WebhookTimestamp int64 } // in milliseconds
	if json.Unmarshal(body, &linear) == nil && linear.WebhookTimestamp != 0 &&
		!e.recent(time.UnixMilli(linear.WebhookTimestamp)) {
		return ""
	}
	return hex.EncodeToString(own)
}

func (e *endpoint) recent(at time.Time) bool { return e.source.cfg.Now().Sub(at).Abs() <= maxSkew }

// request is what the inbox keeps of a request.
type request struct {
	At     time.Time `json:"at"` // when it came
	Prompt string    `json:"prompt"`
}

// accept stores an authentic request, unless the template makes nothing of it.
func (e *endpoint) accept(ctx context.Context, d *desk.Desk, key string, body []byte) (stored bool, err error) {
	prompt, err := render(e.template, body)
	if err != nil {
		e.source.cfg.Log.Warn("fill template of hook", "hook", e.Name, "err", err)
		return false, fail(http.StatusUnprocessableEntity,
			"The body does not match the hook's template. The front door's log says why.")
	}
	if prompt == "" {
		return false, nil
	}
	event, err := e.event(key, prompt)
	if err != nil {
		return false, err
	}
	known, err := e.source.cfg.Inbox.Knows(ctx, event.Source, event.ID)
	if err != nil {
		return false, fmt.Errorf("receive request of hook %s: %w", e.Name, err)
	}
	over := ""
	if !known {
		if over, err = e.afford(ctx, d); err != nil {
			return false, err
		}
		if err := e.limit(ctx); err != nil {
			return false, err
		}
	}
	if err := e.source.cfg.Inbox.Accept(ctx, event); err != nil {
		return false, err
	}
	if over != "" {
		if err := e.over().Change(ctx, func(last *string) error { *last = over; return nil }); err != nil {
			e.source.cfg.Log.Warn("record that a request is over budget", "hook", e.Name, "err", err)
		}
	}
	return true, nil
}

// event returns what the inbox keeps of a request, unless no fleet would take its task.
func (e *endpoint) event(key, prompt string) (intake.Event, error) {
	event := intake.Event{Source: string(Hook), Kind: e.Name}
	if key == "" {
		key = rand.Text()
	} else {
		event.Known = keyLife
	}
	event.ID = e.Name + "." + digest(key)
	r := request{e.source.cfg.Now(), prompt}
	if err := e.task(event.ID, r).Check(); err != nil {
		return event, fail(http.StatusUnprocessableEntity, err.Error())
	}
	var err error
	if event.Body, err = json.Marshal(r); err != nil {
		return event, fmt.Errorf("encode request of hook %s: %w", e.Name, err)
	}
	return event, nil
}

// task returns the task of a request. Its ID follows from the request.
func (e *endpoint) task(eventID string, r request) tasks.Task {
	_, key, _ := strings.Cut(eventID, ".")
	id := tasks.NewID(r.At, string(Hook), e.Name+"-"+key[:min(12, len(key))])
	return e.source.task(e.Automation, id, id, r.Prompt)
}

// limit counts a request that is new, and refuses it if there were too many.
func (e *endpoint) limit(ctx context.Context) error {
	wait, err := e.source.cfg.Limiter.Allow(ctx, string(Hook)+"/"+e.Name, time.Hour/time.Duration(e.PerHour), e.PerHour)
	if err != nil {
		return fmt.Errorf("limit hook %s: %w", e.Name, err)
	}
	if wait > 0 {
		return &intake.Problem{
			Status: http.StatusTooManyRequests, Title: "Too many requests",
			Detail: fmt.Sprintf("This hook takes %d requests an hour.", e.PerHour), RetryAfter: wait,
		}
	}
	return nil
}

// over is the last day on which a request over budget was stored, with the budget.
func (e *endpoint) over() intake.Memo[string] { return e.source.cfg.over("hook:" + e.Name) }

// afford refuses a request that is new if a budget is used up. The first one of a day becomes a task all the same: its
// ending says so where the results of the hook go. Then over is the day with the budget, which counts only once the
// request is stored, or else nobody would hear of it. So several that come at once become tasks: see [result.Close].
func (e *endpoint) afford(ctx context.Context, d *desk.Desk) (over string, err error) {
	now := e.source.cfg.Now().UTC()
	err = d.Affords(ctx, e.task("", request{At: now}))
	refusal, refused := errors.AsType[*tasks.InputError](err)
	if !refused {
		return "", err
	}
	last, err := e.over().Load(ctx)
	if err != nil {
		return "", err
	}
	if !silences(last, refusal.Option, now) {
		return onDay(now, refusal.Option), nil
	}
	return "", &intake.Problem{
		Status: http.StatusTooManyRequests, Title: "Budget used up",
		Detail:     "A budget of this hook is used up. A new day begins at midnight UTC.",
		RetryAfter: now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now),
	}
}

// onDay names a budget on a day.
func onDay(at time.Time, budget string) string { return at.Format(time.DateOnly) + " " + budget }

// silences reports whether a request over a budget was last stored today, or tomorrow: the clock of another front door
// may be a little ahead. What one stored that was far ahead does not count.
func silences(last, budget string, now time.Time) bool {
	return last == onDay(now, budget) || last == onDay(now.Add(24*time.Hour), budget)
}

var keyForm = regexp.MustCompile(`^[ -~]{1,255}$`)

// keyOf returns what repetitions of a request have in common. Without a key of its sender that is the signature if it
// has a timestamp, because the same signature is a replay. It is the verified one, because a replay may have other
// headers that nothing verifies, or other letters in them. Or else it is the delivery that a service's headers name.
// Each kind of key begins with its own word. Without a key every request is another one.
func keyOf(h http.Header, signature string) (string, error) {
	own, delivery := h.Get(intake.KeyHeader), cmp.Or(h.Get(jiraDelivery), h.Get(linearDelivery))
	switch {
	case own != "" && !keyForm.MatchString(own):
		return "", fail(http.StatusBadRequest, "An Idempotency-Key has 1 to 255 printable characters of ASCII.")
	case own != "":
		return "key " + own, nil
	case h.Get(intake.TimestampHeader) != "":
		return "signature " + signature, nil
	case delivery != "":
		return "delivery " + delivery, nil
	}
	return "", nil
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// submit makes the task of a stored request. The inbox keeps a refused one for an operator, whose errand.yaml has to
// allow it: the request itself was checked when it came.
func (s *Source) submit(ctx context.Context, d *desk.Desk, e intake.Event) (outcome string, err error) {
	hook := s.hooks[e.Kind]
	if hook == nil {
		return "", fmt.Errorf("errand.yaml of this front door has no hook %s", e.Kind) // another one's may have
	}
	var r request
	if err := json.Unmarshal(e.Body, &r); err != nil {
		return "", fmt.Errorf("read request of hook %s: %w: %w", e.Kind, err, intake.ErrUnreadable)
	}
	receipt, err := d.Submit(ctx, hook.task(e.ID, r))
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		return "", fmt.Errorf("%w: %w", intake.ErrUnreadable, input)
	}
	if err != nil {
		return "", fmt.Errorf("submit task of hook %s: %w", e.Kind, err)
	}
	return "Task " + receipt.ID + ".", nil
}
