package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// maxChecked is how much of an answer is read before any of it is passed on, so that one that shows the credential
// soon, such as settings for a client, is refused with a status. It also bounds the search for tokens.
const maxChecked = 64 << 10

// hidden are secrets that no answer may show.
type hidden struct {
	values []string
	known  *redact.Redactor // finds them in every form
}

func newHidden(values ...string) hidden { return hidden{values, redact.Known(values...)} }

// shownIn reports whether a text has one of the secrets.
func (h hidden) shownIn(text []byte) bool {
	short := func(value string) bool { return bytes.Contains(text, []byte(value)) } // too short for another form
	return slices.ContainsFunc(h.values, short) || h.known.Finds(text)
}

var errShown = errors.New("the answer shows the credential")

// challenge reports whether a value of WWW-Authenticate names a server that gives out tokens. The value may have other
// challenges, whose realms are no such servers.
var challenge = regexp.MustCompile(
	`(?i)\bBearer +(?:\w+ *= *(?:"[^"]*"|[^\s",]*) *, *)*realm *= *"?https?://`).MatchString

// checkAnswer returns an error if an answer shows a secret, for which some registries have a page, is a token, or wants
// one. What follows the first part of a long answer is searched while it is passed on, and ends where it shows a
// secret.
func checkAnswer(res *http.Response, secrets hidden) error {
	if strings.Join(res.Header.Values("Content-Encoding"), "") != "" {
		return errors.New("the answer has an encoding that was not asked for")
	}
	wants := slices.ContainsFunc(res.Header.Values("WWW-Authenticate"), challenge)
	if res.StatusCode == http.StatusUnauthorized && wants {
		return errors.New("the registry wants a token in exchange for its credential, which errand does not support")
	}
	body := res.Body
	begin, err := io.ReadAll(io.LimitReader(body, maxChecked))
	if err != nil {
		return err
	}
	var header bytes.Buffer
	_ = res.Header.Write(&header)
	if secrets.shownIn(begin) || secrets.shownIn(header.Bytes()) {
		return errShown
	}
	if holdsToken(begin) {
		return errors.New("the answer is a token")
	}
	if len(begin) < maxChecked {
		res.Body = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(begin), body}
		return nil
	}
	whole := io.MultiReader(bytes.NewReader(begin), body)
	res.Body = &searched{Closer: body, from: whole, clean: secrets.known.Stream()}
	return nil
}

// searched is a body that ends with an error before the first secret in it.
type searched struct {
	io.Closer
	from  io.Reader
	clean *redact.Stream

	buffer [32 << 10]byte
	ready  []byte // was searched
	err    error
}

func (s *searched) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		var n int
		n, s.err = s.from.Read(s.buffer[:])
		s.ready = s.clean.Write(s.buffer[:n])
		if s.err != nil {
			s.ready = append(bytes.Clone(s.ready), s.clean.Flush()...)
		}
		if s.clean.Found() {
			s.ready, s.err = nil, errShown
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// tokenFields are the fields of a JSON object that have a token.
var tokenFields = []string{"token", "access_token", "refresh_token"}

// holdsToken reports whether an answer, of which the end may be missing, is a JSON object with a field for a token. The
// value does not matter.
func holdsToken(begin []byte) bool {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(begin, []byte("\ufeff"))))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return false
	}
	for {
		name, err := d.Token()
		field, ok := name.(string)
		if err != nil || !ok { // the end of the object, or of what is there
			return false
		}
		if slices.ContainsFunc(tokenFields, func(f string) bool { return strings.EqualFold(f, field) }) {
			return true
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return false
		}
	}
}
