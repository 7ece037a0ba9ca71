package protocol

import (
	"io"
	"strings"
	"testing"
)

// A line that is still coming is a sign that the CLI lives: it cannot answer a ping before the line's end.
func TestLongLineIsHeardOnItsWay(t *testing.T) {
	t.Parallel()
	r := newReading(t, nil)
	out, in := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		r.Read(out)
	}()
	// The second piece should be requested when the first has been handled.
	if _, err := io.WriteString(in, `{"type":"user","x":"`+strings.Repeat("x", 2*maxPiece)); err != nil {
		t.Fatal(err)
	}
	if c := r.Clock(); c.Heard.IsZero() || !c.Active.IsZero() {
		t.Errorf("heard %v, active %v", c.Heard, c.Active)
	}
	_ = in.Close()
	<-read
}
