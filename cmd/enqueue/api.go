package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/doctor"
)

const defaultAddr = "127.0.0.1:8080"

// callLimit bounds a request with a short answer. Streams and logs have no limit.
const callLimit = 30 * time.Second

// maxProblem bounds the body of an error response, in bytes. The health of an unhealthy fleet is one, too.
const maxProblem = 8 << 20

// apiClient calls the HTTP API of a front door.
type apiClient struct {
	base  string // http://host:port, without a trailing slash
	token string
	saved bool // by `enqueue login`
	http  *http.Client
	pause time.Duration // before the first reconnection of a follower
}

// newAPIClient takes an address in the form that a server listens on, or a URL.
func newAPIClient(addr, token string) (*apiClient, error) {
	if token = strings.TrimSpace(token); strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil,
			errors.New("ERRAND_CONSOLE_TOKEN contains blanks, line breaks or other invalid characters: copy it again")
	}
	c := &apiClient{token: token, http: &http.Client{CheckRedirect: notFollowed}, pause: firstPause}
	addr = strings.TrimRight(cmp.Or(strings.TrimSpace(addr), defaultAddr), "/")
	if strings.Contains(addr, "://") {
		u, err := url.Parse(addr)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			u.RawQuery+u.Fragment != "" {
			// Do not quote it: it may contain a password.
			return nil, errors.New("ERRAND_HTTP_ADDR must be host:port or a URL like https://errand.example.com")
		}
		c.base = strings.TrimRight(u.String(), "/")
		return c, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("ERRAND_HTTP_ADDR must be host:port or a URL, not %q", addr)
	}
	// A server may listen on all addresses; a client needs one.
	if ip := net.ParseIP(host); host == "" || ip.Equal(net.IPv4zero) {
		host = "127.0.0.1"
	} else if ip.Equal(net.IPv6unspecified) {
		host = "::1"
	}
	c.base = "http://" + net.JoinHostPort(host, port)
	return c, nil
}

// notFollowed refuses redirects: behind one, a POST can become a GET, and a token is left out at another host.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// open sends a request, such as GET /api/tasks, and returns the response if its status is 2xx. A body that is not nil
// is sent as JSON.
func (c *apiClient) open(ctx context.Context, request string, body any, header ...string) (*http.Response, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("marshal request: %w", err)
		}
	}
	method, path, _ := strings.Cut(request, " ")
	address, sent := c.base+path, bytes.NewReader(content)
	req, err := http.NewRequestWithContext(ctx, method, address, sent)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", path, err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil,
			fmt.Errorf("connection to %s refused: is `enqueue serve` or `worker -standalone` running there? "+
				"Otherwise %s", c.base, c.remedy("ERRAND_HTTP_ADDR to its address"))
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s does not answer in time; check that address", c.base)
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("connect to errand: %w. %s", err, doctor.Unreachable(err, "that address"))
	case resp.StatusCode < 200 || resp.StatusCode >= 300:
		defer resp.Body.Close()
		return nil, c.responseError(resp)
	}
	return resp, nil
}

// remedy says how to use another address or token, which are set by a variable or saved.
func (c *apiClient) remedy(variable string) string {
	if c.saved {
		return "use `enqueue login URL` with its address and ERRAND_CONSOLE_TOKEN, or a token of `enqueue token create`"
	}
	return "set " + variable
}

// apiError is an error response. A retry helps only if its status is 5xx.
type apiError struct {
	status int
	text   string
	body   []byte
}

func (e *apiError) Error() string { return e.text }

func (c *apiClient) responseError(resp *http.Response) error {
	var problem struct{ Title, Detail string }
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // a partial body is handled below
	text := fmt.Sprintf("%s answered %s: is this errand?", c.base, resp.Status)
	to, err := resp.Location()
	switch {
	case err == nil:
		text = display.Line(fmt.Sprintf("%s redirects to %s://%s: %s", c.base, to.Scheme, to.Host,
			c.remedy("ERRAND_HTTP_ADDR to the front door's own address")))
	case resp.StatusCode == http.StatusUnauthorized && c.token == "":
		text = "the server requires a token: set ERRAND_CONSOLE_TOKEN to the server's value (`worker " +
			"-standalone` prints one if none is set)"
	case resp.StatusCode == http.StatusUnauthorized:
		text = "the server refused the token: " + c.remedy("ERRAND_CONSOLE_TOKEN to the server's value")
	case json.Unmarshal(b, &problem) == nil && problem.Title != "":
		text = display.Line(problem.Title + ": " + problem.Detail)
	}
	return &apiError{resp.StatusCode, text, b}
}

// call sends a request and decodes the response into v. It also returns the response's text.
func (c *apiClient) call(ctx context.Context, request string, body, v any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := c.open(ctx, request, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusNoContent {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return nil, fmt.Errorf("read response of %s: %w: is this errand?", c.base, err)
	}
	return b, nil
}

// show calls the API and prints the response: with print or, with --json, as it is.
func show[T any](ctx context.Context, t *terminal, request string, body any, print func(T)) error {
	_, err := shown(ctx, t, request, body, print)
	return err
}

// shown is show for callers that need the response, too.
func shown[T any](ctx context.Context, t *terminal, request string, body any, print func(T)) (v T, err error) {
	text, err := t.api.call(ctx, request, body, &v)
	switch {
	case err != nil:
	case t.raw:
		err = t.printJSON(text)
	default:
		print(v)
	}
	return v, err
}

// serverEvent is a server-sent event. One without data is a keepalive.
type serverEvent struct{ id, name, data string }

// serverEvents reads server-sent events until the connection ends.
func serverEvents(r io.Reader) iter.Seq[serverEvent] {
	return func(yield func(serverEvent) bool) {
		var e serverEvent
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			line = strings.TrimRight(line, "\r\n")
			field, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if line != "" { // a comment
					if !yield(serverEvent{}) {
						return
					}
					continue
				}
				if e.data != "" && !yield(e) {
					return
				}
				e = serverEvent{}
			}
		}
	}
}
