package protocol

import (
	"strings"
	"testing"
)

func TestTailSaysWhenItWasCut(t *testing.T) {
	t.Parallel()
	var s Tail
	s.Add([]byte("one\nhalf a "))
	s.Add([]byte("line\n"))
	if got := s.String(); got != "one\nhalf a line" {
		t.Errorf("the tail is %q", got)
	}
	for range tailLines + 5 {
		s.Add([]byte("line " + strings.Repeat("ü", tailWidth)))
		s.Add([]byte(strings.Repeat("y", 3*tailWidth) + "\n"))
	}
	got := s.String()
	if !strings.HasPrefix(got, "[only the last 100 lines]\nline ü") || strings.Count(got, "\n") != tailLines ||
		len(got) > tailLines*(tailWidth+1)+30 {
		t.Errorf("%d lines, %d bytes", strings.Count(got, "\n"), len(got))
	}
}
