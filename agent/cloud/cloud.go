// Package cloud describes the clouds that offer the model: Amazon Bedrock, Google Vertex AI and Microsoft Foundry. The CLI has a mode
// for each in which it sends its requests unsigned. The gateway of a run sends them on signed, so that no credential of a cloud is
// within the agent's reach.
//
// Each cloud is a package below this one, because each brings its vendor's modules.
package cloud

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Provider is the model in a cloud. It is safe for concurrent use.
type Provider interface {
	// Name is that of the cloud, for people.
	Name() string

	// Host is where requests go, for people.
	Host() string

	// Kind describes for what else the CLI could have got this Environment: providers of the same kind take the same questions.
	Kind() string

	// Environment returns the variables with which the CLI sends its requests to base, unsigned. base has no slash at its end.
	Environment(base string) map[string]string

	// Question says what a request of the CLI asks for. path is escaped, and begins with the slash behind base. ok is false for what
	// no run needs.
	Question(method, path string) (q Question, ok bool)

	// Smallest returns the path of a question to a model, and the anthropic_version in its body; empty: the body names the model, and
	// has none. An empty model is the one that the CLI starts with.
	Smallest(model string) (path, named, version string)

	// Direct changes the URL of such a request, which may have been made for another provider of this Kind, to that of the cloud.
	Direct(u *url.URL)

	// Sign adds the credential to a request, which is changed no more after it. The errors say what is wrong with the credential. It
	// may wait for a new one, as long as the context of the request allows.
	Sign(req *http.Request, body []byte) error
}

// Question is what a request asks for.
type Question struct {
	Model    string // as the cloud names it; empty: the body says it
	Streamed bool   // by the path; otherwise the body says it
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
