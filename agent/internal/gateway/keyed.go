package gateway

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keyed is the transport of a gateway that adds the credential, and notes what the model says about it.
type keyed struct{ g *Gateway }

func (t keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	l := t.g.lease
	sent := req.Clone(req.Context())
	if l.key.Cloud != nil {
		l.key.Cloud.Direct(sent.URL)
	} else {
		sent.Header.Set(l.key.header())
	}
	res, err := l.key.transport.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	l.ring.observe(l.key, res.Header)
	c, isCall := req.Context().Value(callKey{}).(*call)
	if !isCall || !l.ring.several() { // lists and counts of tokens have rights and limits of their own
		return res, nil
	}
	if until := unusable(res, time.Now()); !until.IsZero() {
		t.g.seen.refused(l.refused(res, until, t.g.seen.served()))
	} else if res.StatusCode == http.StatusOK {
		l.accepted()
		t.g.seen.accepted(c.began)
	}
	return res, nil
}

const (
	// shortWait is the longest wait that does not hold a credential.
	shortWait = 30 * time.Second
	// holdFor is how long a credential is held if the model does not say until when it cannot be used.
	holdFor = 5 * time.Minute
	// longestHold bounds a hold, unless the model says when a subscription's limit is reset: somebody may have raised
	// the account's limit before the time in the answer.
	longestHold = time.Hour
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
			return reset
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
	if longest := now.Add(longestHold); until.After(longest) {
		return longest
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
