package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/cloud"
)

// takeToken removes the first part of a path and returns it.
func takeToken(u *url.URL) string {
	token, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	for _, path := range []*string{&u.Path, &u.RawPath} {
		*path = strings.TrimPrefix(*path, "/"+token)
	}
	return token
}

// cloudRoutes handles what the CLI asks of a cloud.
func (g *Gateway) cloudRoutes(proxy http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		q, ok := g.lease.key.Cloud.Question(req.Method, req.URL.EscapedPath())
		switch {
		case !ok:
			apiError(w, http.StatusNotFound, "not_found_error", "runs have no use for this path")
		case req.Method == http.MethodGet:
			req.Body, req.ContentLength = http.NoBody, 0
			proxy.ServeHTTP(w, req)
		default:
			g.ask(w, req, proxy, q)
		}
	})
}

// cloudHeaders may pass to a cloud. Others could choose a more expensive service or the account that pays.
var cloudHeaders = append([]string{"Accept", "Accept-Encoding", "Content-Type", "User-Agent"}, apiHeaders...)

// cleanForCloud removes from a request what could make it cost more.
func cleanForCloud(req *http.Request) {
	for name := range req.Header {
		if !slices.Contains(cloudHeaders, name) {
			req.Header.Del(name)
		}
	}
	if req.Method != http.MethodGet && req.URL.RawQuery != "beta=true" {
		req.URL.RawQuery = ""
	}
	req.Host = ""
}

// cloudSigner is the transport to a cloud.
type cloudSigner struct {
	next    http.RoundTripper
	cloud   cloud.Provider
	headers http.Header
	log     *slog.Logger
}

// RoundTrip signs a request and sends it. Without a credential the answer is the one that the cloud would give, so that
// the CLI does not ask again. If the credential cannot be fetched at the moment, the CLI asks again.
func (s cloudSigner) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	maps.Copy(req.Header, s.headers)
	var body []byte
	if req.GetBody != nil {
		r, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	if err := s.cloud.Sign(req, body); err != nil {
		if req.Context().Err() != nil {
			return nil, err
		}
		s.log.Warn("a request to the model cannot be signed", "cloud", s.cloud.Name(), "err", err)
		if temporary(err) {
			const message = " cannot be asked: the worker cannot fetch its credential at the moment. Its log says why."
			return refusal(req, http.StatusServiceUnavailable, "overloaded_error", s.cloud.Name()+message), nil
		}
		const message = " cannot be asked: the worker has no valid credential. Its log says why."
		return refusal(req, http.StatusUnauthorized, "authentication_error", s.cloud.Name()+message), nil
	}
	return s.next.RoundTrip(req)
}

// temporary reports whether an error says that a service could not be reached or failed, and nothing of a credential.
func temporary(err error) bool {
	if errors.Is(err, cloud.ErrUnreachable) {
		return true
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return !e.IsNotFound
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return true
	}
	type answer interface { // such as that of AWS
		error
		HTTPStatusCode() int
	}
	if e, ok := errors.AsType[answer](err); ok && e.HTTPStatusCode() >= http.StatusInternalServerError {
		return true
	}
	_, unconnected := errors.AsType[*net.OpError](err)
	return unconnected || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// unsent is the body of a refusal.
type unsent struct{ io.ReadCloser }

// refusal is the answer to a request that was not sent.
func refusal(req *http.Request, status int, kind, message string) *http.Response {
	body := apiErrorBody(kind, message)
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(body)),
		Body: unsent{io.NopCloser(bytes.NewReader(body))},
	}
}

// cloudError returns the type of an error of Bedrock; empty: it has none.
func cloudError(res *http.Response) string {
	kind, _, _ := strings.Cut(res.Header.Get("X-Amzn-Errortype"), ":")
	return kind
}

// deniesAccess reports whether Bedrock says that the credential has no right to what was asked.
func deniesAccess(res *http.Response) bool {
	return res.StatusCode == http.StatusForbidden && cloudError(res) == "AccessDeniedException"
}

// deniesModel reports whether a refusal is about the model, which the account may lack, and not about the credential.
func deniesModel(res *http.Response) bool {
	text := bytes.ToLower(refusalText(res))
	return deniesAccess(res) && (bytes.Contains(text, []byte("access to the model")) ||
		bytes.Contains(text, []byte("model access")))
}

// deniesResource reports whether Bedrock says that a policy forbids what was asked, such as an inference profile.
func deniesResource(res *http.Response) bool {
	return deniesAccess(res) && bytes.Contains(refusalText(res), []byte(" on resource: "))
}

// quotaHold returns how long to hold a credential because of its account's quota in a cloud; 0 for other refusals, such
// as a short overload. Bedrock has daily quotas ("Too many tokens per day"), Vertex AI has quotas per minute ("Quota
// exceeded for …").
func quotaHold(res *http.Response) time.Duration {
	switch text := refusalText(res); {
	case cloudError(res) == "ThrottlingException" && bytes.Contains(text, []byte("per day")):
		return holdFor
	case bytes.Contains(text, []byte("RESOURCE_EXHAUSTED")) && bytes.Contains(text, []byte("Quota exceeded")):
		return time.Minute
	}
	return 0
}
