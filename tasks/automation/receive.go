package automation

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
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
	Task string `json:"task"` // empty: the template has made nothing of the request
	New  bool   `json:"new"`  // false: an earlier request had the same key
}

// serve answers a request with the ID of its task.
func (s *Source) serve(w http.ResponseWriter, r *http.Request, d *desk.Desk) {
	made, err := s.receive(w, r, d)
	if err == nil {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(made) // the sender may be gone
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

func (s *Source) receive(w http.ResponseWriter, r *http.Request, d *desk.Desk) (accepted, error) {
	body, status := intake.ReadBody(w, r, maxBody)
	switch status {
	case http.StatusOK:
	case http.StatusRequestEntityTooLarge:
		return accepted{}, fail(status, fmt.Sprintf("A request has at most %d bytes.", maxBody))
	default:
		return accepted{}, fail(status, "The body could not be read.")
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
		return accepted{}, fail(http.StatusUnauthorized,
			"There is no such hook, or the signature, the secret or the timestamp is missing or wrong.")
	}
	// A sender that leaves now does not leave half a task.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	return e.accept(ctx, d, keyOf(r.Header, signature), body)
}

// The headers in which other services send the signature of a body, and the ID that the repetitions of a request have.
const (
	githubSignature = "X-Hub-Signature-256"
	jiraSignature   = "X-Hub-Signature"
	linearSignature = "Linear-Signature"
	jiraDelivery    = "X-Atlassian-Webhook-Identifier"
	linearDelivery  = "Linear-Delivery"
)

// sentDigest returns the signature that a request has, in hexadecimal.
func sentDigest(h http.Header) string {
	for _, name := range []string{intake.SignatureHeader, githubSignature, jiraSignature} {
		if digest, found := strings.CutPrefix(h.Get(name), "sha256="); found {
			return digest
		}
	}
	return h.Get(linearSignature)
}

// verified returns the HMAC of a request in hexadecimal if the request has it, or the secret itself, and its
// timestamps, if any, are recent; or else nothing.
func (e *endpoint) verified(h http.Header, body []byte) string {
	own := intake.Digest(h, e.Secret, body)
	given, err := hex.DecodeString(sentDigest(h))
	if err != nil || e.Secret == "" {
		return ""
	}
	if len(given) == 0 && hmac.Equal([]byte(h.Get("Authorization")), []byte("Bearer "+e.Secret)) {
		given = own
	}
	if !hmac.Equal(given, own) {
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

// accept submits the task of an authentic request.
func (e *endpoint) accept(ctx context.Context, d *desk.Desk, k key, body []byte) (accepted, error) {
	prompt, err := render(e.template, body)
	if err != nil {
		e.source.cfg.Log.Warn("fill template of hook", "hook", e.Name, "err", err)
		return accepted{}, fail(http.StatusUnprocessableEntity,
			"The body does not match the hook's template. The front door's log says why.")
	}
	if prompt == "" {
		return accepted{}, nil
	}
	first, err := e.first(ctx, k, body)
	if err != nil || first.Done {
		return accepted{Task: first.Task}, err
	}
	id := first.Task
	receipt, err := d.Submit(ctx, e.source.task(e.Automation, id, id, prompt))
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		return accepted{}, fail(http.StatusUnprocessableEntity, input.Sentence)
	}
	if err == nil && k.value != "" {
		first.Done = true
		_, err = e.note(ctx, k, first)
	}
	return accepted{receipt.ID, receipt.New}, err
}

// limit counts a request that is to become a task, once for all that have its key, and refuses it if there were too
// many.
func (e *endpoint) limit(ctx context.Context, k key) error {
	every := time.Hour / time.Duration(e.PerHour)
	wait, err := e.source.cfg.Limiter.AllowOnce(ctx, string(Hook)+"/"+e.Name, k.name(), every, e.PerHour)
	if err != nil {
		return fmt.Errorf("limit hook %s: %w", e.Name, err)
	}
	if wait > 0 {
		return &intake.Problem{
			Status: http.StatusTooManyRequests, Title: "Too many requests",
			Detail: fmt.Sprintf("This hook starts %d tasks an hour.", e.PerHour), RetryAfter: wait,
		}
	}
	return nil
}

// key is what repetitions of a request have in common. Without a value every request is a task.
type key struct {
	kind  string // "": of the sender
	value string
}

// name returns a name that every key has for itself, or "".
func (k key) name() string {
	if k.value == "" {
		return ""
	}
	return k.kind + digest(k.value)
}

// The kinds of keys that senders do not choose. The body of a repeated delivery may have another time.
const (
	ofSignature = "signature-"
	ofDelivery  = "delivery-"
)

// keyOf returns the key of a request. With a timestamp and no key it is the signature, because the same signature is a
// replay. It is the verified one, because a replay may have other headers that nothing verifies, or other letters in
// them.
func keyOf(h http.Header, signature string) key {
	own := h.Get(intake.KeyHeader)
	switch {
	case own != "":
		return key{value: own}
	case h.Get(intake.TimestampHeader) != "":
		return key{ofSignature, signature}
	}
	return key{ofDelivery, cmp.Or(h.Get(jiraDelivery), h.Get(linearDelivery))}
}

var keyForm = regexp.MustCompile(`^[ -~]{1,255}$`)

// keyed is the task of a key.
type keyed struct {
	Task string `json:"task"`
	Body string `json:"body"` // digest
	Done bool   `json:"done"` // the task was submitted; its record may have expired since
}

// errKnown means that what is to be noted about a key is known.
var errKnown = errors.New("known")

func (e *endpoint) memo(k key) intake.Memo[keyed] {
	name := string(Hook) + "/" + e.Name + "/" + k.name()
	return intake.Memo[keyed]{Memory: e.source.cfg.Memory, Name: name, Log: e.source.cfg.Log}
}

// first returns the task of a request: that of the first request that had the key. Only the first counts for the limit.
func (e *endpoint) first(ctx context.Context, k key, body []byte) (keyed, error) {
	fresh := tasks.NewID(e.source.cfg.Now(), string(Hook), e.Name+"-"+strings.ToLower(rand.Text()[:12]))
	own := keyed{Task: fresh, Body: digest(string(body))}
	if k.value == "" {
		return own, e.limit(ctx, k)
	}
	if !keyForm.MatchString(k.value) {
		return keyed{}, fail(http.StatusBadRequest, "An Idempotency-Key has 1 to 255 printable characters of ASCII.")
	}
	first, err := e.memo(k).Load(ctx)
	if err == nil && first.Task == "" {
		if err := e.limit(ctx, k); err != nil {
			return keyed{}, err
		}
		first, err = e.note(ctx, k, own)
	}
	if err != nil {
		return keyed{}, err
	}
	if first.Body != own.Body && k.kind != ofDelivery {
		return keyed{}, fail(http.StatusUnprocessableEntity,
			"An earlier request had the same Idempotency-Key and another body.")
	}
	return first, nil
}

// note notes own about a key unless as much is noted, and returns what is noted then. A key counts for longer than the
// record of its task is kept.
func (e *endpoint) note(ctx context.Context, k key, own keyed) (noted keyed, err error) {
	err = e.memo(k).Change(ctx, func(before *keyed) error {
		noted = *before
		if noted.Task != "" && (noted.Done || !own.Done) {
			return errKnown // without a write, so that repetitions do not get in each other's way
		}
		noted, *before = own, own
		return nil
	})
	if errors.Is(err, errKnown) {
		err = nil
	}
	return noted, err
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
