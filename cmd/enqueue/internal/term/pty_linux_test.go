package term

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// openPTY gives both ends of a terminal of that width.
func openPTY(t *testing.T, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

func TestOutKnowsATerminal(t *testing.T) {
	t.Parallel()
	_, slave := openPTY(t, 72)
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
			o := NewOut(test.file, func(name string) string { return test.env[name] })
			if got := o.Width(); got != test.width {
				t.Errorf("it is %d wide, want %d", got, test.width)
			}
			if o.Rewrites() != test.rewrites {
				t.Errorf("rewrites: %v", o.Rewrites())
			}
			if got := o.Paint(Red, "no"); got != test.painted {
				t.Errorf("red is %q", got)
			}
		})
	}
}

// What is printed on a real terminal's line is on the screen what it should be, wherever the status line comes in between.
func TestScreenOnATerminal(t *testing.T) {
	t.Parallel()
	const columns = 30
	_, slave := openPTY(t, columns)
	v := newVT(t, columns, 6)
	out := NewOut(slave, func(string) string { return "" })
	out.w = v
	s := NewScreen(out, out, out)
	see := func(want string) {
		t.Helper()
		if got := v.seen(); got != want {
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
