// Package redact removes secrets from text, and makes text safe to show in a terminal or a chat.
//
// A [Redactor] hides the values it was given, in every form in which they commonly appear, and everything that looks
// like a well-known kind of credential. A [Stream] does the same for text that arrives in pieces. [Plain] and [Clip]
// make untrusted text harmless and short.
//
// The package cannot hide a secret that it was not given and that has no well-known form, nor one that was encrypted,
// compressed or rewritten character by character.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// redacted replaces a secret, whatever its length.
const redacted = "[redacted]"

// Redactor removes secrets from text: the values it was given, in all their forms (see forms), and anything with the
// shape of a well-known kind of credential (see shapes). It hides every byte of a secret, also where two secrets
// overlap, and replaces each run of hidden bytes with one [redacted]. A Redactor is safe for concurrent use, and only
// Part changes it. A nil *Redactor hides nothing.
type Redactor struct {
	known    atomic.Pointer[patterns]
	learning sync.Mutex
	learnt   int // bytes of bodies of shapes: see learn
}

// patterns are what a Redactor looks for.
type patterns struct {
	all    []pattern
	filter filter
}

// New returns a Redactor for the given secrets and the well-known shapes. It ignores empty and very short values.
func New(secrets ...string) *Redactor {
	var all []pattern
	for _, s := range shapes {
		all = append(all, pattern{text: []byte(s.text), names: s.names, body: s.body, least: s.least})
	}
	return redactor(all, secrets)
}

// Known returns a Redactor for only the given secrets. It keeps everything else, such as signatures, valid.
func Known(secrets ...string) *Redactor { return redactor(nil, secrets) }

func redactor(known []pattern, secrets []string) *Redactor {
	r := &Redactor{}
	r.set(known, secrets, true)
	return r
}

// ForRun returns a Redactor that hides the same, and learns by itself.
func (r *Redactor) ForRun() *Redactor {
	if r == nil {
		return nil
	}
	run := &Redactor{}
	run.known.Store(r.known.Load())
	return run
}

// set makes r look for patterns and secrets.
func (r *Redactor) set(known []pattern, secrets []string, given bool) {
	all := slices.Clone(known)
	for _, s := range secrets {
		for _, f := range Forms(s) {
			known := func(p pattern) bool { return p.body == 0 && string(p.text) == f }
			if !slices.ContainsFunc(all, known) {
				all = append(all, pattern{text: []byte(f), given: given})
			}
		}
	}
	r.known.Store(&patterns{all, newFilter(all)})
}

// Bytes returns b without secrets. It returns b itself if b has no secrets, otherwise a copy.
func (r *Redactor) Bytes(b []byte) []byte {
	clean, _ := r.clean(b)
	return clean
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	if clean, changed := r.clean([]byte(s)); changed {
		return string(clean)
	}
	return s
}

// JSON returns the JSON value v without secrets: v itself if it has none. It looks at each string as the program that
// decodes v will see it, so the result is JSON with the same members. If a secret crosses the bounds of a string, or v
// is not JSON, all of v is hidden.
func (r *Redactor) JSON(v json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var value any
	if r == nil || d.Decode(&value) != nil || d.Decode(new(any)) != io.EOF {
		return whole(v, r.Finds(v))
	}
	value, changed := r.value("", value)
	clean := []byte(v)
	if changed || r.Finds(v) { // also in a member that another one of its name has replaced
		clean, _ = json.Marshal(value) // what was decoded can be encoded
	}
	crosses := func(s span) bool { return bytes.IndexByte(clean[s.from:s.to], '"') >= 0 } // no body has a quote
	return whole(clean, slices.ContainsFunc(r.find(clean, true).spans, crosses))
}

// whole returns a JSON value, or all of it hidden.
func whole(v json.RawMessage, hidden bool) json.RawMessage {
	if hidden {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return v
}

// value returns a decoded JSON value without secrets. name is that of the member it is in.
func (r *Redactor) value(name string, value any) (_ any, changed bool) {
	switch v := value.(type) {
	case string:
		before := name + `"` // the name may say that the value is a secret
		clean := after(before, []byte(before+v), r.find([]byte(before+v), true).spans)
		return clean, clean != v
	case json.Number:
		if r.Finds([]byte(v)) {
			return redacted, true
		}
	case []any:
		for i := range v {
			var is bool
			v[i], is = r.value("", v[i])
			changed = changed || is
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			clean, is := r.value(name, v[name])
			hidden := r.String(name)
			delete(v, name)
			v[hidden] = clean
			changed = changed || is || hidden != name
		}
	}
	return value, changed
}

// Finds reports whether b has a secret.
func (r *Redactor) Finds(b []byte) bool { return len(r.find(b, true).spans) > 0 }

func (r *Redactor) clean(b []byte) (_ []byte, changed bool) {
	found := r.find(b, true)
	if len(found.spans) == 0 {
		return b, false
	}
	clean, _ := hide(make([]byte, 0, len(b)), b, found.spans, false)
	return clean, true
}

// Head returns the first n characters of text, without secrets. Cutting text before redacting it would show the
// beginning of a secret that crosses the cut.
func (r *Redactor) Head(text []byte, n int) string {
	return Clip(string(r.Broken(text[:min(len(text), utf8.UTFMax*n)])), n)
}

// span is a range of bytes to hide.
type span struct {
	from, to int
	given    bool // it is a known value
}

// findings are the secrets that find has found in a text.
type findings struct {
	spans   []span  // ordered by the beginnings of the secrets
	open    charset // the sets of secrets that may continue after the text
	opened  int     // where the first of these begins
	settled int     // the text from here on may be the beginning of a secret
}

// find looks for secrets in b. If last is set, no text follows b.
func (r *Redactor) find(b []byte, last bool) findings {
	f := findings{settled: len(b), opened: len(b)}
	if r == nil {
		return f
	}
	var measured bodies
	known := &r.known.Load().filter
	for at := known.next(b, 0); at < len(b); at = known.next(b, at+stride) {
		for _, a := range known.anchors(b[at:]) {
			begin := at - a.offset
			if begin < 0 || b[begin] != a.secret.text[0] {
				continue
			}
			s, is := a.secret.match(b[begin:])
			switch {
			case is == maybe && !last:
				f.settled = begin
				return f
			case is != yes:
				continue
			}
			s.from, s.to = begin+s.from, begin+s.to
			if body := a.secret.body; body != 0 {
				if s.to = measured.end(b, body, s.to); s.to == len(b) {
					f.open |= body
					f.opened = min(f.opened, begin)
				}
			}
			f.spans = append(f.spans, s)
		}
	}
	if !last {
		f.settled = known.unsettled(b)
	}
	return f
}

// bodies caches the latest body of each set. Overlapping bodies of one set end at the same place, so each is measured
// only once.
type bodies [charsets]span

// end returns the end of the body of this set that extends to at least at.
func (l *bodies) end(b []byte, set charset, at int) int {
	i := set.index()
	if at < l[i].from || at > l[i].to {
		n, _ := set.follow(b[at:])
		l[i] = span{from: at, to: at + n}
	}
	return l[i].to
}

// unsettled checks the last bytes of b, which are too few for the filter, and returns where a secret may begin there.
func (f *filter) unsettled(b []byte) int {
	for begin := max(0, len(b)-shortest+1); begin < len(b); begin++ {
		for _, p := range f.first[b[begin]] {
			if _, is := p.match(b[begin:]); is == maybe {
				return begin
			}
		}
	}
	return len(b)
}

// Broken returns a text that was broken off, without secrets and without the beginning of one.
func (r *Redactor) Broken(text []byte) []byte { return []byte(r.Part("", string(text))) }

// Open returns the end of a text with which a secret may begin, or that is in one that may go on. It is empty for most
// texts.
func (r *Redactor) Open(text string) string {
	f := r.find([]byte(text), false)
	return text[min(f.settled, f.opened):]
}

// Part returns a text that follows another one, and may itself go on, without secrets: also without the end of one that
// begins before it, and without the beginning of one with which it ends. From then on r hides both parts of a secret
// that it found across the two texts, wherever they come again: see learn.
func (r *Redactor) Part(before, text string) string {
	all := []byte(before + text)
	spans := r.find(all, true).spans
	for _, s := range spans {
		if at := len(before); s.from < at && at < s.to {
			r.learn(string(all[s.from:at]), s.given)
			r.learn(string(all[at:s.to]), s.given)
		}
	}
	open := r.find(all, false).settled
	if begun := open + r.begun(all[open:]); begun < len(all) {
		spans = append(spans, span{from: begun, to: len(all)})
	}
	return after(before, all, spans)
}

// after returns what follows before in all, with the spans replaced.
func after(before string, all []byte, spans []span) string {
	for i, s := range spans {
		spans[i] = span{from: max(0, s.from-len(before)), to: s.to - len(before)}
	}
	spans = slices.DeleteFunc(spans, func(s span) bool { return s.to <= 0 })
	part, _ := hide(nil, all[len(before):], spans, false)
	return string(part)
}

// learn hides a part of a secret from now on, wherever it comes. It leaves out what is short or may be words, which
// readers would miss: the body of a shape may go on with any text, so each word of it is judged. Each part makes the
// search slower. Only who knows a given secret can write its parts, but an agent can write any number of shapes, so a
// run learns a limited number of bytes of their bodies, of which a word takes leastLearnt.
func (r *Redactor) learn(part string, given bool) {
	r.learning.Lock()
	defer r.learning.Unlock()
	if given {
		part = strings.TrimSpace(part)
		if len(part) >= minLine || len(part) >= minPart && givenUnlikeWords.MatchString(part) {
			r.add(part, true)
		}
		return
	}
	outside := func(c rune) bool { return c >= utf8.RuneSelf || setsOf[c]&dotted == 0 }
	for _, word := range strings.FieldsFunc(strings.ReplaceAll(part, `\n`, " "), outside) {
		takes := max(len(word), leastLearnt)
		if len(word) >= minPart && r.learnt+takes <= maxLearnt && !bodyLikeWords(word) && r.add(word, false) {
			r.learnt += takes
		}
	}
}

// add makes r look for a part of a secret, and reports whether it did not yet do so.
func (r *Redactor) add(part string, given bool) bool {
	if r.String(part) == redacted {
		return false
	}
	r.set(r.known.Load().all, []string{part}, given)
	return true
}

// givenUnlikeWords matches what few words have. That is enough to learn a part of a given secret.
var givenUnlikeWords = regexp.MustCompile(`[0-9]|[a-z][A-Z]`)

// bodyLikeWords reports whether a text in the body of a shape may be words, short names in code, or numbers. Of random
// characters, almost every second one is of another kind than the one before it; of those, less than every fourth,
// wherever one looks.
func bodyLikeWords(text string) bool {
	for from := range max(1, len(text)-window+1) {
		places, before, part := 0, space, text[from:min(from+window, len(text))]
		for _, c := range part {
			now := kindOf(c)
			if now != before && now != space && before != space && (before != capital || now != letter) {
				places++
			}
			before = now
		}
		if 4*places >= len(part) {
			return false
		}
	}
	return true
}

// kind is a kind of characters.
type kind int

const (
	space kind = iota // what stands between words, parts of names, and numbers
	letter
	capital
	digit
	mark
)

func kindOf(c rune) kind {
	switch {
	case unicode.IsUpper(c):
		return capital
	case unicode.IsLetter(c):
		return letter
	case unicode.IsDigit(c):
		return digit
	case strings.ContainsRune("-_./", c):
		return space
	}
	return mark
}

// begun returns where the beginning of a secret may be with which b ends, unless it is so short that many texts end
// like this. Otherwise it returns len(b).
func (r *Redactor) begun(b []byte) int {
	for begin := range max(0, len(b)-minSecret+1) {
		for _, p := range r.known.Load().filter.first[b[begin]] {
			if s, is := p.match(b[begin:]); is == maybe && s.to-s.from >= minSecret {
				return begin + s.from
			}
		}
	}
	return len(b)
}

// hide appends b to dst with the spans replaced; parts of spans outside b are ignored. hidden reports whether the byte
// before b was hidden. hide returns whether the last byte of b was.
func hide(dst, b []byte, spans []span, hidden bool) ([]byte, bool) {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	at := 0
	for _, s := range spans {
		if s.from >= len(b) {
			break
		}
		if s.from > at || at == 0 && !hidden { // otherwise it continues the previous span
			dst = append(append(dst, b[at:s.from]...), redacted...)
		}
		at, hidden = max(at, min(s.to, len(b))), true
	}
	return append(dst, b[at:]...), hidden && at == len(b)
}

const (
	minSecret = 6  // a shorter value, such as a test's "x", would redact most of the log
	minLine   = 16 // length from which a line of a multi-line secret is hidden by itself
	minPart   = 8  // length from which a part of a secret is learnt if it is unlike words

	window      = 12      // bytes that are judged together
	leastLearnt = 128     // what a short word takes: it has many forms
	maxLearnt   = 8 << 10 // more than a private key has
)

// Forms returns the texts in which a secret can appear: the secret itself, each line of a private key, JSON strings
// (also nested ones), URL encodings, hexadecimal, reversed, and as part of longer data in base64. A very short secret
// has no forms.
func Forms(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret {
		return nil
	}
	all := []string{secret}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	for _, s := range all {
		inside := escaped(s, false)
		query := url.QueryEscape(s)
		spaced := strings.ReplaceAll(query, "+", "%20")
		all = append(all, inside, escaped(s, true), escaped(inside, false), strings.ReplaceAll(inside, "/", `\/`))
		segment := url.PathEscape(s)
		all = append(all, query, spaced, segment, lowerPercent(query), lowerPercent(spaced), lowerPercent(segment))
	}
	inHex := hex.EncodeToString([]byte(secret))
	return append(append(all, inHex, strings.ToUpper(inHex), reversed(secret)), inBase64(secret)...)
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerPercent changes percent escapes to lower case.
func lowerPercent(s string) string { return percent.ReplaceAllStringFunc(s, strings.ToLower) }

// reversed returns the characters of s in reverse order.
func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// escaped returns s as the content of a JSON string, with <, > and & escaped if html is set, as Go's encoder does by
// default.
func escaped(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // encoding a string cannot fail
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

// inBase64 returns the base64 encodings of s inside longer data: one per alignment of s to the three-byte groups,
// without the characters at both ends that also encode neighbouring bytes.
func inBase64(s string) []string {
	var all []string
	for before := range 3 {
		data := append(make([]byte, before), s...)
		from, to := (before*8+5)/6, len(data)*8/6
		all = append(all, base64.RawStdEncoding.EncodeToString(data)[from:to],
			base64.RawURLEncoding.EncodeToString(data)[from:to])
	}
	return all
}

// filter finds the places in a text where a pattern may begin. A regular expression, or a search for each of a hundred
// texts, would be tens of times too slow for the CLI's output, which rarely has a secret. So filter samples the text (a
// q-gram filter): at every second byte it looks up three bytes in a table that has bytes 0-2 and bytes 1-3 of every
// pattern. Wherever a pattern is, one of the two is hit.
type filter struct {
	slots   [1 << slotBits]uint8 // bucket numbers by the hash of three bytes; bucket 0 stays empty
	buckets [256][]anchor
	first   [256][]*pattern // patterns by their first byte
}

// anchor says which pattern three bytes belong to, and their offset in it.
type anchor struct {
	secret *pattern
	offset int
}

const (
	gram     = 3
	stride   = 2                 // distance between the sampled places
	shortest = gram + stride - 1 // length of the shortest pattern that is always found
	slotBits = 17                // with 16, twice as many places would match by accident
)

// newFilter returns a filter for patterns. It keeps pointers into the slice. Each pattern, with one byte of its body,
// must have at least shortest bytes.
func newFilter(patterns []pattern) filter {
	var f filter
	for offset := stride - 1; offset >= 0; offset-- { // so that of two patterns, the one that begins first comes first
		for i := range patterns {
			p := &patterns[i]
			if offset == 0 {
				f.first[p.text[0]] = append(f.first[p.text[0]], p)
			}
			b := p.text[offset:]
			if len(b) >= gram {
				f.add(b, anchor{p, offset})
				continue
			}
			for c, sets := range setsOf {
				if sets&p.body != 0 {
					f.add(append(slices.Clip(b), byte(c)), anchor{p, offset})
				}
			}
		}
	}
	return f
}

func (f *filter) add(b []byte, a anchor) {
	h := hash(uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16)
	n := uint8(1 + h%255)
	f.slots[h] = n
	f.buckets[n] = append(f.buckets[n], a)
}

// next returns the first sampled place at or after at that has anchors, or len(b).
func (f *filter) next(b []byte, at int) int {
	for ; at+8 <= len(b); at += 3 * stride {
		x := binary.LittleEndian.Uint64(b[at:])
		if f.slots[hash(x)]|f.slots[hash(x>>16)]|f.slots[hash(x>>32)] != 0 {
			break
		}
	}
	for ; at+gram <= len(b); at += stride {
		if len(f.anchors(b[at:])) > 0 {
			return at
		}
	}
	return len(b)
}

// anchors returns the anchors of the first three bytes of b. The caller checks that b has them.
func (f *filter) anchors(b []byte) []anchor {
	return f.buckets[f.slots[hash(uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16)]]
}

// hash hashes the lowest three bytes of x (multiplicative hashing).
func hash(x uint64) uint64 { return (x << 40) * 0x9E3779B97F4A7C15 >> (64 - slotBits) }

// Stream removes secrets from text that arrives in pieces, wherever the text is split: its output, joined, equals
// Redactor.Bytes of the whole text. It holds back only the end of a piece that may be the beginning of a secret. That
// end is shorter than the longest known value and the minimum length of a shape; the body of a shape is dropped as it
// arrives, however long it is. A Stream is not safe for concurrent use.
type Stream struct {
	redact *Redactor
	held   []byte
	spans  []span  // parts of held that are hidden because of text before it
	open   charset // the following bytes are hidden as long as they are in one of these sets
	hidden bool    // the last byte that was returned was hidden
	found  bool    // there was a secret
	out    []byte
}

// Stream returns a Stream for a new text.
func (r *Redactor) Stream() *Stream { return &Stream{redact: r} }

// Write adds a piece and returns the text that can be shown. The result is valid until the next call, and only as long
// as piece is.
func (s *Stream) Write(piece []byte) []byte { return s.next(piece, false) }

// Found reports whether there was a secret in the texts so far.
func (s *Stream) Found() bool { return s.found }

// Flush ends the text and returns the rest of it. The Stream can then be used for another text.
func (s *Stream) Flush() []byte {
	rest := s.next(nil, true)
	s.open, s.hidden = 0, false
	return rest
}

// Break is Flush for a text that may have been broken off within a secret: the rest does not show its beginning.
func (s *Stream) Break() []byte {
	if from := s.redact.begun(s.held); from < len(s.held) {
		s.spans = append(s.spans, span{from: from, to: len(s.held)})
	}
	return s.Flush()
}

func (s *Stream) next(piece []byte, last bool) []byte {
	text, spans := piece, s.spans
	if len(s.held) > 0 {
		s.held = append(s.held, piece...)
		text = s.held
	}
	if old := len(text) - len(piece); s.open != 0 && len(piece) > 0 {
		var n int
		if n, s.open = s.open.follow(piece); n > 0 {
			spans = append(spans, span{from: old, to: old + n})
		}
	}
	found := s.redact.find(text, last)
	spans, s.open = append(spans, found.spans...), s.open|found.open
	s.found = s.found || len(spans) > 0
	show := text[:found.settled]
	if len(spans) > 0 || len(s.held) > 0 {
		s.out, s.hidden = hide(s.out[:0], show, spans, s.hidden)
		show = s.out
	} else if len(show) > 0 {
		s.hidden = false
	}
	s.spans = s.spans[:0]
	for _, p := range spans {
		if p.to > found.settled {
			s.spans = append(s.spans, span{from: max(0, p.from-found.settled), to: p.to - found.settled})
		}
	}
	s.held = append(s.held[:0], text[found.settled:]...)
	return show
}
