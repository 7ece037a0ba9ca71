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
				t.Errorf("Width() = %d, want %d", got, test.width)
			}
			if o.Rewrites() != test.rewrites {
				t.Errorf("Rewrites() = %v", o.Rewrites())
			}
			if got := o.Paint(term.Red, "no"); got != test.painted {
				t.Errorf("Paint(Red) = %q", got)
			}
		})
	}
}

// The status line is below what is printed and never part of it.
func TestScreenOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 30
	_, slave := termtest.Open(t, columns)
	v := termtest.NewVT(t, columns)
	out := term.NewOut(slave, func(string) string { return "" })
	out.Redirect(v)
	s := term.NewScreen(out, out, out)
	see := func(want string) {
		t.Helper()
		if got := v.Visible(); got != want {
			t.Errorf("the terminal shows\n%s\nwant\n%s", got, want)
		}
	}
	s.Status("1s")
	see("1s")
	s.Text("Let me")
	see("Let me")
	s.Status("2s · something that is much wider than the screen")
	see("Let me")
	s.Text(" see\n")
	see("Let me see\n2s · something that is mu…")
	s.Status("3s")
	see("Let me see\n3s")
	_, _ = v.Write([]byte("^C")) // echoed by the terminal
	s.Line("· Running x")
	see("Let me see\n· Running x\n3s")
	s.Text("123456789 123456789 123456789 ") // to the edge
	s.Text("日本語 ")
	s.Newline()
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語\n3s")
	s.Text("It ends.\n\nThen this, and on beyond the edge\n")
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語\nIt ends.\n\nThen this, and on beyond the e\ndge\n3s")
	s.Status("")
	s.Line("done")
	see("Let me see\n· Running x\n123456789 123456789 123456789\n日本語\nIt ends.\n\nThen this, and on beyond the e\ndge\ndone")
}
