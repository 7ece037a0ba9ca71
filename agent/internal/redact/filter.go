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
