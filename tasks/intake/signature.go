package intake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The headers of signed requests.
const (
	SignatureHeader = "X-Errand-Signature-256"
	TimestampHeader = "X-Errand-Timestamp"
	KeyHeader       = "Idempotency-Key"
)

// Digest returns the HMAC of a request's body. With a timestamp it is of timestamp, key and body with full stops
// between them.
func Digest(h http.Header, secret string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	if stamp := h.Get(TimestampHeader); stamp != "" {
		_, _ = mac.Write([]byte(stamp + "." + h.Get(KeyHeader) + ".")) // a hash never fails
	}
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}

// Sign adds the headers to a request. key is its Idempotency-Key.
func Sign(h http.Header, secret, key string, now time.Time, body []byte) {
	h.Set(KeyHeader, key)
	h.Set(TimestampHeader, strconv.FormatInt(now.Unix(), 10))
	h.Set(SignatureHeader, "sha256="+hex.EncodeToString(Digest(h, secret, body)))
}

// Problem is an error response to a program, in the form of RFC 9457.
type Problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`

	RetryAfter time.Duration `json:"-"` // time until the sender may try again; 0 if unknown
}

// NewProblem returns a Problem without a time to try again.
func NewProblem(status int, title, detail string) *Problem {
	return &Problem{Status: status, Title: title, Detail: detail}
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

// Write sends the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.RetryAfter/time.Second)+1))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the sender may be gone
}
