package agent

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// redacted replaces a secret. It is the same length as nothing in particular, on purpose.
const redacted = "[redacted]"

// Redactor takes secrets out of text: the values it was given, in the forms in which they turn up (see forms), and what looks like a
// well-known kind of credential (see shapes). Every byte that belongs to a secret is hidden, also where two of them overlap; each row of
// such bytes becomes one [redacted]. A Redactor is immutable, and safe for concurrent use; nil hides nothing.
type Redactor struct {
	secrets []pattern
	filter  filter
}

// NewRedactor knows the given secrets besides the well-known shapes. Empty and very short values are left out.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range shapes {
		r.secrets = append(r.secrets, pattern{text: []byte(s.text), names: s.names, body: s.body, least: s.least})
	}
	for _, s := range secrets {
		for _, f := range forms(s) {
			known := func(p pattern) bool { return p.body == 0 && string(p.text) == f }
			if !slices.ContainsFunc(r.secrets, known) {
				r.secrets = append(r.secrets, pattern{text: []byte(f)})
			}
		}
	}
	r.filter = newFilter(r.secrets)
	return r
}

// Bytes returns b without secrets: b itself when there is none in it, else a copy.
func (r *Redactor) Bytes(b []byte) []byte {
	clean, _ := r.clean(b)
	return clean
}

// String is Bytes for a string.
func (r *Redactor) String(s string) string {
	if clean, changed := r.clean([]byte(s)); changed {
		return string(clean)
	}
	return s
}

// json is Bytes for a JSON value, and returns one: where a secret reached beyond a string of it, nothing is left of the value.
func (r *Redactor) json(v json.RawMessage) json.RawMessage {
	clean, changed := r.clean(v)
	if changed && !json.Valid(clean) {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return clean
}

func (r *Redactor) clean(b []byte) (_ []byte, changed bool) {
	found := r.find(b, true)
	if len(found.spans) == 0 {
		return b, false
	}
	clean, _ := hide(make([]byte, 0, len(b)), b, found.spans, false)
	return clean, true
}

// head returns at most n characters of the beginning of text without secrets. Cut first and redacted then, it would show the beginning of
// a secret that stands across the cut.
func (r *Redactor) head(text []byte, n int) string {
	if len(text) <= utf8.UTFMax*n {
		return clip(string(r.Bytes(text)), n)
	}
	return clip(string(r.stream().Write(text[:utf8.UTFMax*n])), n)
}

// span is a row of bytes to be hidden.
type span struct{ from, to int }

// findings are the secrets in a text.
type findings struct {
	spans   []span  // in the order of the beginnings of the secrets
	open    charset // of secrets that may go on behind the text's end
	settled int     // what begins at or after it may be the beginning of a secret
}

// find looks for secrets in b; last means that nothing follows it.
func (r *Redactor) find(b []byte, last bool) findings {
	f := findings{settled: len(b)}
	if r == nil {
		return f
	}
	var known bodies
	for at := r.filter.next(b, 0); at < len(b); at = r.filter.next(b, at+stride) {
		for _, a := range r.filter.anchors(b[at:]) {
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
			s = span{begin + s.from, begin + s.to}
			if body := a.secret.body; body != 0 {
				if s.to = known.end(b, body, s.to); s.to == len(b) {
					f.open |= body
				}
			}
			f.spans = append(f.spans, s)
		}
	}
	if !last {
		f.settled = r.unsettled(b)
	}
	return f
}

// bodies are the latest of each set. Those of one set that overlap end together, and are measured once.
type bodies [charsets]span

// end returns where the body ends that reaches to at or farther.
func (l *bodies) end(b []byte, set charset, at int) int {
	i := set.index()
	if at < l[i].from || at > l[i].to {
		n, _ := set.follow(b[at:])
		l[i] = span{at, at + n}
	}
	return l[i].to
}

// unsettled returns where in its last bytes, too few for the filter, b may have the beginning of a secret.
func (r *Redactor) unsettled(b []byte) int {
	for begin := max(0, len(b)-shortest+1); begin < len(b); begin++ {
		for _, p := range r.filter.first[b[begin]] {
			if _, is := p.match(b[begin:]); is == maybe {
				return begin
			}
		}
	}
	return len(b)
}

// hide appends b to dst without the spans, of which only what is in b counts. hidden is whether the byte before b was hidden, and what is
// returned with it, whether its last one is.
func hide(dst, b []byte, spans []span, hidden bool) ([]byte, bool) {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	at := 0
	for _, s := range spans {
		if s.from >= len(b) {
			break
		}
		if s.from > at || at == 0 && !hidden { // else it goes on where the one before it ended
			dst = append(append(dst, b[at:s.from]...), redacted...)
		}
		at, hidden = max(at, min(s.to, len(b))), true
	}
	return append(dst, b[at:]...), hidden && at == len(b)
}
