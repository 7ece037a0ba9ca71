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

	"github.com/errand-fleet/errand/internal/legible"
)

const defaultAddr = "127.0.0.1:8080"

// callLimit bounds a request that is answered at once; streams and logs last as long as they last.
const callLimit = 30 * time.Second

// door is a front door as its clients see it.
type door struct {
	base  string // http://host:port, without a slash at the end
	token string
	http  *http.Client
	pause time.Duration // the first one of a follower that was cut off
}

// newDoor takes the address in the form a server listens at, or a URL.
func newDoor(addr, token string) (*door, error) {
	if token = strings.TrimSpace(token); strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("ERRAND_CONSOLE_TOKEN has blanks, line breaks or other characters in it that no token has: copy it again")
	}
	d := &door{token: token, http: &http.Client{}, pause: firstPause}
	addr = strings.TrimRight(cmp.Or(addr, defaultAddr), "/")
	if strings.HasPrefix(addr, "http://") || strings.HasPrefix(addr, "https://") {
		u, err := url.Parse(addr)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" {
			return nil, errors.New("ERRAND_HTTP_ADDR is not a URL like https://errand.example.com, nor host:port") // it may hold a password
		}
		d.base = addr
		return d, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("ERRAND_HTTP_ADDR is %q: write host:port or a URL", addr)
	}
	// A server listens at all addresses; a client has to take one.
	if ip := net.ParseIP(host); host == "" || ip.Equal(net.IPv4zero) {
		host = "127.0.0.1"
	} else if ip.Equal(net.IPv6unspecified) {
		host = "::1"
	}
	d.base = "http://" + net.JoinHostPort(host, port)
	return d, nil
}

// open sends a request and gives the answer when it is a good one; body may be nil. The error says what to do.
func (d *door) open(ctx context.Context, method, path string, body []byte, header ...string) (*http.Response, error) {
	resp, err := d.send(ctx, method, path, body, header...)
	if err != nil || resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close()
	return nil, d.refusal(resp)
}

// send is open for a caller that has a use for every answer.
func (d *door) send(ctx context.Context, method, path string, body []byte, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, bytes.NewReader(body)) //nolint:gosec // where to is the word of who calls us
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", path, err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	resp, err := d.http.Do(req) //nolint:gosec // as above
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nothing answers at %s: is `enqueue serve` or `worker -standalone` running there? ERRAND_HTTP_ADDR says where to look", d.base)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s does not answer in time; ERRAND_HTTP_ADDR says where to look", d.base)
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("reach errand: %w; ERRAND_HTTP_ADDR says where to look", err)
	}
	return resp, nil
}

// refused is an error that the server itself has decided on: asking again is no use unless it is 5xx.
type refused struct {
	status int
	text   string
}

func (e *refused) Error() string { return e.text }

func (d *door) refusal(resp *http.Response) error {
	var problem struct{ Title, Detail string }
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what was read decides
	text := fmt.Sprintf("%s answered %s: is this errand?", d.base, resp.Status)
	switch {
	case resp.StatusCode == http.StatusUnauthorized && d.token == "":
		text = "the server wants a token: set ERRAND_CONSOLE_TOKEN to the value it has (`worker -standalone` prints it when it starts)"
	case resp.StatusCode == http.StatusUnauthorized:
		text = "the server refuses the token: set ERRAND_CONSOLE_TOKEN to the value it has"
	case json.Unmarshal(b, &problem) == nil && problem.Title != "":
		text = legible.Line(problem.Title + ": " + problem.Detail)
	}
	return &refused{resp.StatusCode, text}
}

// call sends a request and decodes the answer; it gives the answer's text as well.
func (d *door) call(ctx context.Context, method, path string, into any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := d.open(ctx, method, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return nil, fmt.Errorf("read answer of %s: %w", path, err)
	}
	return b, nil
}

// sent is a server-sent event. One without data is a sign of life.
type sent struct{ id, name, data string }

// stream reads server-sent events until the connection ends, well or not: what came last tells which.
func stream(r io.Reader) iter.Seq[sent] {
	return func(yield func(sent) bool) {
		var e sent
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
					if !yield(sent{}) {
						return
					}
					continue
				}
				if e.data != "" && !yield(e) {
					return
				}
				e = sent{}
			}
		}
	}
}
