package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// keyed is the transport of a gateway that adds the credential. If there are several and the model says that one cannot
// be used, it sends the request again with another one, so that the CLI notices nothing.
type keyed struct{ g *Gateway }

func (t keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	ring := t.g.keys.ring
	var tried, denied []*key // denied ones are not held
	k, held := t.g.keys.next(nil)
	if k == nil {
		return nil, http.ErrServerClosed
	}
	for {
		c, isCall := req.Context().Value(callKey{}).(*call)
		if isCall {
			c.key, c.lease = k, t.g.keys
		}
		res, err := t.send(req, k, len(tried) > 0)
		if err != nil {
			return nil, err
		}
		ring.observe(k, res.Header)
		apart := !isCall && (deniesAccess(res) || res.StatusCode == http.StatusTooManyRequests)
		if !ring.several() || req.GetBody == nil || apart { // lists and counts have rights and limits of their own
			return res, nil
		}
		until := unusable(res, time.Now())
		if until.IsZero() {
			if held && isCall && res.StatusCode == http.StatusOK { // counting tokens has separate limits
				ring.release(k)
			}
			t.g.seen.keyed(req, k.Name, time.Time{})
			return res, nil
		}
		tried = append(tried, k)
		other, otherHeld := t.g.keys.next(tried)
		if t.holds(res, other == nil && len(denied) == 0) {
			ring.hold(k, until, res.StatusCode)
		} else {
			denied = append(denied, k)
			t.logDenial(k, res)
		}
		if other == nil {
			t.g.seen.keyed(req, k.Name, t.g.keys.freeAt(denied, len(denied) < len(tried)))
			return res, nil
		}
		_ = res.Body.Close()
		t.g.note("the model refuses credential %s with status %d; the run goes on with %s", k.Name,
			res.StatusCode, other.Name)
		k, held = other, otherHeld
	}
}

// logDenial logs once a run that a credential lacks what the run asks for.
func (t keyed) logDenial(k *key, res *http.Response) {
	if t.g.seen.noteOnce("denied " + k.Name) {
		answer := redact.Clip(string(refusalText(res)), 300)
		t.g.keys.ring.log.Warn("a credential for the model is denied a model", "credential", k.Name, "answer", answer)
	}
}

// holds reports whether a refusal is a reason to hold the credential for all runs. alone says that all others of its
// kind are held.
func (t keyed) holds(res *http.Response, alone bool) bool {
	if deniesResource(res) || deniesModel(res) { // the run may have chosen what the account lacks, and it has the rest
		return alone && !t.g.seen.served()
	}
	return true
}

// send sends a request with a credential.
func (t keyed) send(req *http.Request, k *key, again bool) (*http.Response, error) {
	sent := req.Clone(req.Context())
	if k.Cloud != nil {
		k.Cloud.Direct(sent.URL)
	} else {
		sent.Header.Set(k.header())
	}
	if again {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		sent.Body = body
	}
	return k.transport.RoundTrip(sent)
}

const (
	// shortWait is the longest wait that is left to the CLI. It keeps its credential, and so its prompt cache.
	shortWait = 30 * time.Second
	// holdFor is how long a credential is held if the model does not say until when it cannot be used.
	holdFor = 5 * time.Minute
)

// unusable returns until when the credential of an answer cannot be used; zero: the answer does not say that it cannot.
func unusable(res *http.Response, now time.Time) time.Time {
	until := retryAfter(res.Header, now)
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
	case http.StatusBadRequest:
		if !lacksCredit(res) && cloudError(res) != "ServiceQuotaExceededException" {
			return time.Time{}
		}
	case http.StatusTooManyRequests:
		if hold := quotaHold(res); hold > 0 {
			return now.Add(hold)
		}
		reset := resetIn(res.Header, "Reset", now)
		switch rejected := res.Header.Get("Anthropic-Ratelimit-Unified-Status") == "rejected"; {
		case rejected && !reset.IsZero():
			until = reset
		case !rejected && until.Sub(now) <= shortWait:
			return time.Time{}
		}
	case http.StatusServiceUnavailable:
		if _, ours := res.Body.(unsent); ours { // the credential cannot be fetched
			return now.Add(shortWait)
		}
		return time.Time{}
	default:
		return time.Time{}
	}
	if !until.After(now) || until.After(now.Add(MaxReset)) {
		return now.Add(holdFor)
	}
	return until
}

// maxRefusal bounds the part of a refusal that is read before it is passed on.
const maxRefusal = 64 << 10

// lacksCredit reports whether an answer with status 400 is about missing credit. Its body can still be read.
func lacksCredit(res *http.Response) bool {
	var refusal struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.Unmarshal(refusalText(res), &refusal, jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true))
	return err == nil && (refusal.Error.Type == "billing_error" ||
		strings.HasPrefix(refusal.Error.Message, "Your credit balance is too low"))
}

// refusalText returns the beginning of a refusal. Its body can still be read.
func refusalText(res *http.Response) []byte {
	begin, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // the reader of the body gets the error again
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), res.Body), res.Body}
	return begin
}
