package redact

import (
	"encoding/binary"
	"slices"
)

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
	out    []byte
}

// Stream returns a Stream for a new text.
func (r *Redactor) Stream() *Stream { return &Stream{redact: r} }

// Write adds a piece and returns the text that can be shown. The result is valid until the next call, and only as long
// as piece is.
func (s *Stream) Write(piece []byte) []byte { return s.next(piece, false) }

// Flush ends the text and returns the rest of it. The Stream can then be used for another text.
func (s *Stream) Flush() []byte {
	rest := s.next(nil, true)
	s.open, s.hidden = 0, false
	return rest
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
			spans = append(spans, span{old, old + n})
		}
	}
	found := s.redact.find(text, last)
	spans, s.open = append(spans, found.spans...), s.open|found.open
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
			s.spans = append(s.spans, span{max(0, p.from-found.settled), p.to - found.settled})
		}
	}
	s.held = append(s.held[:0], text[found.settled:]...)
	return show
}
