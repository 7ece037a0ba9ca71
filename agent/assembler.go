package agent

import "sync/atomic"

const (
	// maxLines is how much all runs of a Runner together hold of long lines, and so also how long a line may be that has to be whole. The
	// longest seen from the real CLI was 5.6 MB (an edit of a large file, sent with its whole original); a limit of 1 MB, the SDKs'
	// default, loses runs (claude-code#72226).
	maxLines = 64 << 20
	// ownLine is how much of a line each run may hold besides.
	ownLine = 1 << 20
	// headBytes is what is looked at of a line that cannot be held.
	headBytes = 64 << 10
)

// assembler puts lines of the CLI's output together from their pieces, in bounded memory. Not safe for concurrent use.
type assembler struct {
	most  int     // of own: ownLine; tests have less
	spare *budget // for what is longer

	own     []byte // kept
	buf     []byte // the line so far, in own or in what spare paid for
	taken   int    // of spare
	cutting bool   // the line need not be whole
	cutter  cutter
	lost    bool // the line is too long, and its rest of no interest
}

func newAssembler(spare *budget) *assembler {
	return &assembler{most: ownLine, spare: spare, cutter: cutter{limit: stringBytes}}
}

// Add takes the next piece and returns nil, or a line as soon as it is complete; or, once, with whole unset, the beginning of a line that is
// too long to be held. A line is valid until Release.
func (a *assembler) Add(p piece) (line []byte, whole bool) {
	a.lost = a.lost && !p.first
	switch {
	case p.first && p.last:
		return p.text, true // the usual case: no copy
	case a.lost:
		return nil, false
	case !a.hold(p.text):
		a.lost = true
		return a.buf[:min(len(a.buf), headBytes)], false
	case !p.last:
		return nil, false
	}
	return a.buf, true
}

// hold appends text to the line, if there is memory for it.
func (a *assembler) hold(text []byte) bool {
	need, size := len(a.buf)+len(text), 2*cap(a.buf)
	switch {
	case need <= cap(a.buf):
	case need <= a.most:
		a.own = append(make([]byte, 0, max(need, min(size, a.most))), a.buf...)
		a.buf = a.own
	case !a.cutting && bulky(a.buf):
		a.cutting = true
		a.buf = a.cutter.Append(a.buf[:0], a.buf)
		return a.hold(text)
	case a.spare.Take(max(need, size) - a.taken):
		a.taken = max(need, size)
		a.buf = append(make([]byte, 0, a.taken), a.buf...)
	default:
		return false
	}
	if a.cutting {
		a.buf = a.cutter.Append(a.buf, text)
	} else {
		a.buf = append(a.buf, text...)
	}
	return true
}

// bulky reports whether a line that begins with text is what tools put out. Nobody reads long strings of it to the end. An answer, or a
// question that is answered with its own input, has to be whole.
func bulky(text []byte) bool {
	l, ok := decodeHead(text[:min(len(text), headBytes)])
	return ok && l.Type == "user"
}

// Release gives back the memory of the latest line, once it has been handled or lost: 60 MB must not stay with a run that waits.
func (a *assembler) Release() {
	if a.taken > 0 {
		a.spare.Give(a.taken)
	}
	a.buf, a.taken, a.cutting = a.own[:0], 0, false
	a.cutter = cutter{limit: a.cutter.limit}
}

// budget bounds the memory of several runs together. Whoever does not get what it asks for goes on without: nobody waits, and so no run can
// stop another. Safe for concurrent use.
type budget struct {
	total int64 // bytes
	used  atomic.Int64
}

func (b *budget) Take(n int) bool {
	if b.used.Add(int64(n)) > b.total {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) Give(n int) { b.used.Add(-int64(n)) }
