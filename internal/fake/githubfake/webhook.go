package githubfake

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// hookTimeout is how long GitHub waits for the answer to a webhook.
const hookTimeout = 10 * time.Second

// Signature says how a delivery is signed.
type Signature int

// Ways to sign. GitHub itself sends both hashes.
const (
	SignBoth Signature = iota
	SignSHA1           // only the old X-Hub-Signature
	SignNone
	SignWrong // both headers, with another secret
)

// SendOptions deviate from a normal delivery.
type SendOptions struct {
	GUID      string // X-GitHub-Delivery; fresh when empty
	Body      []byte // sent instead of the payload, byte for byte
	Signature Signature
	Form      bool   // application/x-www-form-urlencoded, GitHub's other content type
	To        string // instead of the address given to Deliver
}

// Delivery is one webhook as it was sent.
type Delivery struct {
	GUID, Event string
	Header      http.Header
	Body        []byte
	At          time.Time
	Redelivery  bool
	Answered    bool
	Status      int   // 0 when there was no answer
	Err         error // why there was none
}

// event is a webhook before it is sent.
type event struct {
	name    string
	payload []byte
}

// Deliver sets the address webhooks go to. While it is empty nothing is sent.
func (s *Server) Deliver(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = to
}

// Send delivers any event. The answer's body has been read and can be read
// again. An answer of any status is no error.
func (s *Server) Send(ctx context.Context, event string, payload any, o SendOptions) (*http.Response, error) {
	body := o.Body
	if body == nil {
		var err error
		if body, err = json.Marshal(payload); err != nil {
			return nil, fmt.Errorf("encode %s: %w", event, err)
		}
	}
	d := &Delivery{GUID: o.GUID, Event: event, Body: body, Header: http.Header{}}
	if d.GUID == "" {
		d.GUID = uuid.NewString()
	}
	d.Header.Set("Content-Type", "application/json")
	if o.Form {
		// The signature covers the form, not the JSON inside.
		d.Body = []byte("payload=" + url.QueryEscape(string(body)))
		d.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	d.Header.Set("User-Agent", "GitHub-Hookshot/fake")
	d.Header.Set("X-GitHub-Event", event)
	d.Header.Set("X-GitHub-Delivery", d.GUID)
	d.Header.Set("X-GitHub-Hook-ID", "1")
	if s.cfg.AppID != 0 {
		d.Header.Set("X-GitHub-Hook-Installation-Target-Type", "integration")
		d.Header.Set("X-GitHub-Hook-Installation-Target-ID", strconv.FormatInt(s.cfg.AppID, 10))
	}
	s.sign(d, o.Signature)
	return s.post(ctx, d, o.To)
}

func (s *Server) sign(d *Delivery, how Signature) {
	secret := s.cfg.WebhookSecret
	if how == SignWrong {
		secret += "-wrong"
	}
	mac := func(h func() hash.Hash) string {
		m := hmac.New(h, []byte(secret))
		m.Write(d.Body)
		return hex.EncodeToString(m.Sum(nil))
	}
	if how != SignNone {
		d.Header.Set("X-Hub-Signature", "sha1="+mac(sha1.New))
	}
	if how == SignBoth || how == SignWrong {
		d.Header.Set("X-Hub-Signature-256", "sha256="+mac(sha256.New))
	}
}

// post sends and records one delivery. It takes Server.mu by itself.
func (s *Server) post(ctx context.Context, d *Delivery, to string) (*http.Response, error) {
	s.mu.Lock()
	if to == "" {
		to = s.hook
	}
	// Recorded before it is sent: a receiver can find the delivery it handles.
	d.At = s.cfg.Now()
	s.deliveries = append(s.deliveries, d)
	s.changed()
	s.mu.Unlock()

	resp, err := s.roundTrip(ctx, d, to)

	s.mu.Lock()
	defer s.mu.Unlock()
	d.Answered, d.Err = true, err
	if err == nil {
		d.Status = resp.StatusCode
	}
	s.changed()
	return resp, err
}

func (s *Server) roundTrip(ctx context.Context, d *Delivery, to string) (*http.Response, error) {
	if to == "" {
		return nil, errors.New("deliver " + d.Event + ": no address, call Deliver first")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("deliver %s: %w", d.Event, err)
	}
	req.Header = d.Header.Clone() // the transport may write to it
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("deliver %s: %w", d.Event, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("deliver %s: read answer: %w", d.Event, err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// deliver sends the subscribed events in order and stops at the first that is
// not answered with success. It must be called without Server.mu.
func (s *Server) deliver(ctx context.Context, events ...event) error {
	for _, e := range events {
		s.mu.Lock()
		wanted := s.hook != "" && slices.Contains(s.cfg.Events, e.name)
		s.mu.Unlock()
		if !wanted {
			continue
		}
		resp, err := s.Send(ctx, e.name, json.RawMessage(e.payload), SendOptions{})
		if err != nil {
			return err
		}
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("deliver %s: answered %s", e.name, resp.Status)
		}
	}
	return nil
}

// Redeliver sends a delivery again as GitHub does on request: same GUID, same
// bytes, same signature.
func (s *Server) Redeliver(ctx context.Context, guid string) error {
	s.mu.Lock()
	i := slices.IndexFunc(s.deliveries, func(d *Delivery) bool { return d.GUID == guid })
	if i < 0 {
		s.mu.Unlock()
		return fmt.Errorf("redeliver: no delivery %s", guid)
	}
	first := s.deliveries[i]
	s.mu.Unlock()
	resp, err := s.post(ctx, &Delivery{
		GUID: first.GUID, Event: first.Event, Header: first.Header, Body: first.Body, Redelivery: true,
	}, "")
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("redeliver %s: answered %s", first.Event, resp.Status)
	}
	return err
}

// Deliveries returns what was sent of one event, "" for all, in order.
func (s *Server) Deliveries(event string) []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Delivery
	for _, d := range s.deliveries {
		if event == "" || d.Event == event {
			out = append(out, *d)
		}
	}
	return out
}

// LastDelivery returns the latest delivery of one event ("" for any), and
// whether there is one.
func (s *Server) LastDelivery(event string) (Delivery, bool) {
	all := s.Deliveries(event)
	if len(all) == 0 {
		return Delivery{}, false
	}
	return all[len(all)-1], true
}
