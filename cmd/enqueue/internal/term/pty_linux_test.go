package term_test

import (
	"os"
	"testing"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/cmd/enqueue/internal/termtest"
)

func TestOutKnowsATerminal(t *testing.T) {
	t.Parallel()
	_, slave := termtest.Open(t, 72)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, test := range map[string]struct {
		file     *os.File
		env      map[string]string
		width    int
		rewrites bool
		painted  string
	}{
		"terminal":   {slave, nil, 72, true, "\x1b[31mno\x1b[0m"},
		"no colours": {slave, map[string]string{"NO_COLOR": "1"}, 72, true, "no"},
		"dumb":       {slave, map[string]string{"TERM": "dumb"}, 72, false, "no"},
		"none":       {null, nil, 0, false, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			o := term.NewOut(test.file, func(name string) string { return test.env[name] })
			if got := o.Width(); got != test.width {
				t.Errorf("it is %d wide, want %d", got, test.width)
			}
			if o.Rewrites() != test.rewrites {
				t.Errorf("rewrites: %v", o.Rewrites())
			}
			if got := o.Paint(term.Red, "no"); got != test.painted {
				t.Errorf("red is %q", got)
			}
		})
	}
}

// What is printed on a real terminal's line is on the screen what it should be, wherever the status line comes in between.
func TestScreenOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 30
	_, slave := termtest.Open(t, columns)
	v := termtest.NewVT(t, columns, 6)
	out := term.NewOut(slave, func(string) string { return "" })
	out.Redirect(v)
	s := term.NewScreen(out, out, out)
	see := func(want string) {
		t.Helper()
		if got := v.Seen(); got != want {
			t.Errorf("one sees\n%s\nwant\n%s", got, want)
		}
	}
	s.Status("1s")
	see("1s")
	s.Text("Let me")
	see("Let me\n1s")
	s.Status("2s · something that is much wider than the screen")
	see("Let me\n2s · something that is mu…")
	s.Text(" see")
	s.Status("3s")
	see("Let me see\n3s")
	_, _ = v.Write([]byte("^C")) // echoed by the terminal
	s.Line("· Running x")
	see("Let me see\n· Running x\n3s")
	s.Text("123456789 123456789 123456789 ") // to the edge
	s.Text("日本語 ")
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語\n3s")
	s.Text("ends.\n\nThen this, at the bottom")
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語 ends.\n\nThen this, at the bottom\n3s")
	s.Text(" and on beyond it\n")
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語 ends.\n\nThen this, at the bottom and o\nn beyond it\n3s")
	s.Status("")
	s.Line("done")
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語 ends.\n\nThen this, at the bottom and o\nn beyond it\ndone")
}

// When a terminal gets another size, the status line goes, and the text stays.
func TestScreenOnATerminalThatIsResized(t *testing.T) {
	t.Parallel()
	const columns = 30
	master, slave := termtest.Open(t, columns)
	v := termtest.NewVT(t, columns, 6)
	out := term.NewOut(slave, func(string) string { return "" })
	out.Redirect(v)
	s := term.NewScreen(out, out, out)
	for _, line := range []string{"one", "two", "three", "four"} {
		s.Line(line)
	}
	s.Text("Let me")
	s.Status("1s")
	v.Resize(4)
	termtest.Resize(t, master, columns, 4)
	s.Text(" see")
	s.Status("2s")
	if got, want := v.Seen(), "one\ntwo\nthree\nfour\nLet me see\n2s"; got != want {
		t.Errorf("one sees\n%s\nwant\n%s", got, want)
	}
}
