package protocol

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// ReadText reads r to its end, and calls show with the text as it arrives: plain, and redacted as one text, since a
// private key has many lines. The argument of show is valid until show returns.
func ReadText(r io.Reader, redactor *redact.Redactor, show func(text []byte)) {
	in, clean := newLineReader(r, stderrPiece), redactor.Stream()
	for {
		p, err := in.Next()
		if err != nil {
			show(clean.Flush())
			return
		}
		show(clean.Write(redact.Plain(p.text)))
	}
}

// Bounds of a Tail.
const (
	tailLines = 100
	tailWidth = 2 << 10 // bytes of a line
)

// Tail keeps the last lines of a text. It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte // line i is at i % tailLines
	count int               // lines so far
	open  bool              // the last line continues
}

// Add adds text, which may be part of a line.
func (t *Tail) Add(text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(text) {
		if !t.open {
			t.lines[t.count%tailLines] = nil
			t.count++
		}
		last := &t.lines[(t.count-1)%tailLines]
		piece, ended := bytes.CutSuffix(line, []byte("\n"))
		*last = append(*last, piece[:min(len(piece), tailWidth-len(*last))]...)
		t.open = !ended
	}
}

// String joins the lines. It says so if there were more.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := max(0, t.count-tailLines)
	lines := make([]string, 0, tailLines+1)
	if first > 0 {
		lines = append(lines, fmt.Sprintf("[only the last %d lines]", tailLines))
	}
	for i := first; i < t.count; i++ {
		lines = append(lines, strings.ToValidUTF8(string(t.lines[i%tailLines]), ""))
	}
	return strings.Join(lines, "\n")
}
