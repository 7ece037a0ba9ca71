package agent

import (
	"encoding/binary"
	"slices"
)

// filter decides which places of a text are worth a closer look. A regular expression, or a search for each of a hundred texts, would
// be tens of times too slow for the CLI's output, hardly a line of which has a secret. So the output is sampled: of every second place,
// the three bytes there are looked up in a table that has the first and the second three bytes of every pattern (a q-gram filter).
// Whatever the place of a pattern, one of these two is met.
type filter struct {
	slots   [1 << slotBits]uint8 // by the hash of three bytes: the number of a bucket; the first of them stays empty
	buckets [256][]anchor
	first   [256][]*pattern // by the byte that they begin with
}

// anchor says which pattern three bytes are of, and how far behind its beginning.
type anchor struct {
	secret *pattern
	offset int
}

const (
	gram     = 3
	stride   = 2                 // places are looked at in steps of it
	shortest = gram + stride - 1 // what it takes to be found
	slotBits = 17                // smaller, and twice as many places would be looked at for nothing
)

// newFilter keeps pointers to the patterns. Each is at least shortest long, a byte of the body included.
func newFilter(patterns []pattern) filter {
	var f filter
	for offset := stride - 1; offset >= 0; offset-- { // where two begin, the one before the other comes first
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

// next returns the first place at or after at, in steps of stride, that has anchors; len(b) when there is none.
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

// anchors returns what the first bytes of b may be of. b has gram bytes.
func (f *filter) anchors(b []byte) []anchor {
	return f.buckets[f.slots[hash(uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16)]]
}

// hash is of the lower three bytes of x (multiplicative hashing).
func hash(x uint64) uint64 { return (x << 40) * 0x9E3779B97F4A7C15 >> (64 - slotBits) }
