package term_test

import (
	"bytes"
	"testing"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
)

func none(string) string { return "" }

// Without a terminal only text and lines are written, each to its stream.
func TestScreenWithoutATerminal(t *testing.T) {
	t.Parallel()
	var text, side bytes.Buffer
	errs := term.NewOut(&side, none)
	s := term.NewScreen(term.NewOut(&text, none), errs, errs)
	s.Status("1s")
	if s.Printed() {
		t.Error("a status counts as text")
	}
	s.Text("a")
	s.Line("· tool")
	s.Status("2s")
	s.Text("b")
	s.Newline()
	s.Newline()
	s.Line("done\n")
	if got, want := text.String(), "a\nb\n"; got != want || !s.Printed() {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := side.String(), "· tool\ndone\n"; got != want {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"ab cd", 4, "ab…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"👍👍", 3, "👍…"},
		{"abc", 0, "abc"},
		{"abc", 1, "…"},
	} {
		if got := term.Cut(test.in, test.n); got != test.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", test.in, test.n, got, test.want)
		}
	}
	if got := term.Pad("日", 4); got != "日  " {
		t.Errorf("Pad = %q", got)
	}
}
