package agent

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// tailLines and tailWidth bound what a tail holds, in lines and bytes of a line.
const (
	tailLines = 100
	tailWidth = 2 << 10
)

// tail keeps the last lines of the text that is written to it. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte // line i at i % tailLines
	count int               // lines there were
	open  bool              // the last of them goes on
}

// Add adds text, which may be part of a line.
func (t *tail) Add(text []byte) {
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

// String joins the lines, and says when there were more.
func (t *tail) String() string {
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
