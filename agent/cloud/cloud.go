// Package cloud describes the clouds that offer the model: Amazon Bedrock, Google Vertex AI and Microsoft Foundry. The
// CLI has a mode for each in which its requests are unsigned. The gateway of a run signs them and sends them on, so
// that no credential of a cloud is within the agent's reach.
//
// Each cloud is a package below this one, because each brings its vendor's modules.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/internal/cache"
)

// Provider is the model in a cloud. It is safe for concurrent use.
type Provider interface {
	// Name is that of the cloud, for people.
	Name() string

	// Host is where requests go, for people.
	Host() string

	// Environment returns the variables with which the CLI sends unsigned requests to base, which ends without a slash.
	Environment(base string) map[string]string

	// Question parses a request of the CLI. path is escaped and begins with the slash after base. ok is false for
	// requests that no run needs.
	Question(method, path string) (q Question, ok bool)

	// Smallest returns the path of a request to a model, and the anthropic_version in its body. If the version is
	// empty, the body names the model instead. An empty model is the one that the CLI starts with.
	Smallest(model string) (path, named, version string)

	// Direct changes the URL of a request of the CLI to the cloud's.
	Direct(u *url.URL)

	// Sign adds the credential to a request, which must not change afterwards. An error explains what is wrong with the
	// credential, or is ErrUnreachable. Sign may wait for a new one, as long as the request's context allows.
	Sign(req *http.Request, body []byte) error
}

// ErrUnreachable says that the service that gives credentials could not be reached or failed, and nothing of a
// credential.
var ErrUnreachable = errors.New("the service that gives credentials cannot be reached or fails")

// Tokens shares the tokens of a credential. Its SDK keeps a token until it is time to renew it. If that fails, the last
// token is used until it expires.
type Tokens[T any] struct {
	get    func(context.Context) (T, error)
	expiry func(T) time.Time
	status func(error) int

	answers cache.Cache[T]
	last    atomic.Pointer[T] // nil: there was none
}

// NewTokens returns the Tokens of get. status returns the HTTP status of the answer that caused an error of get, or 0
// if there was no answer.
func NewTokens[T any](
	get func(context.Context) (T, error), expiry func(T) time.Time, status func(error) int,
) *Tokens[T] {
	t := &Tokens[T]{get: get, expiry: expiry, status: status}
	t.answers.Limit, t.answers.Life, t.answers.ErrorLife = 30*time.Second, time.Second, 5*time.Second
	t.answers.Now = time.Now
	return t
}

// Current returns a token that has not expired.
func (t *Tokens[T]) Current(ctx context.Context) (T, error) {
	token, err := t.answers.Get(ctx, "", func(ctx context.Context) (T, error) {
		token, err := t.get(ctx)
		if err != nil {
			return token, unfetched(err, t.status(err), t.last.Load() != nil)
		}
		t.last.Store(&token)
		return token, nil
	})
	if last := t.last.Load(); err != nil && last != nil && time.Now().Before(t.expiry(*last)) {
		return *last, nil
	}
	return token, err
}

// unfetched returns why a token was not fetched: err, with ErrUnreachable if the credential is not the cause. Without
// an answer the cause may be the credential, unless it has had a token.
func unfetched(err error, status int, had bool) error {
	failed := status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
	if refused := status >= http.StatusBadRequest; failed || had && !refused {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// Question describes a request to the model.
type Question struct {
	Model    string // the cloud's name of it; empty if only the body has it
	Streamed bool   // according to the path; if false, the body decides
	Free     bool   // costs nothing: a list, or a count of tokens
}

// Base parses a URL below which requests go.
func Base(address string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil {
		return nil, fmt.Errorf("read the address of the model: %w", err)
	}
	return base, nil
}

// Redirect changes the base of a URL and keeps the rest, as it was escaped.
func Redirect(u, base *url.URL) {
	path, raw := u.Path, u.EscapedPath()
	u.Scheme, u.Host = base.Scheme, base.Host
	u.Path, u.RawPath = base.Path+path, base.EscapedPath()+raw
}
