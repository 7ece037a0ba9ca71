// Package term writes to a terminal: it detects one, measures it, styles text and draws a status line below what is
// printed.
//
// It does not sanitize text: callers pass text from other people through internal/legible first. Its types are not safe
// for concurrent use.
package term

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Out is a stream that a command writes to. It remembers the first write error, so that callers need not check each
// write.
type Out struct {
	w       io.Writer
	err     error
	fd      int  // of the terminal, or -1
	colours bool // the terminal shows colours and the user wants them
	dumb    bool // the terminal can only print
}

// NewOut returns a stream that writes to w. It respects NO_COLOR (no-color.org) and TERM=dumb.
func NewOut(w io.Writer, getenv func(string) string) *Out {
	o := &Out{w: w, fd: -1, dumb: getenv("TERM") == "dumb"}
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		o.fd = int(f.Fd())
		o.colours = !o.dumb && getenv("NO_COLOR") == ""
	}
	return o
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Write implements [io.Writer].
func (o *Out) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Err returns the first write error. Everything written since may be missing, too.
func (o *Out) Err() error { return o.err }

func (o *Out) print(s string) { _, _ = io.WriteString(o, s) }

// TTY reports whether the stream is a terminal.
func (o *Out) TTY() bool { return o.fd >= 0 }

// Rewrites reports whether the stream is a terminal on which printed text can be overwritten.
func (o *Out) Rewrites() bool { return o.TTY() && !o.dumb }

// Width returns the terminal's current number of columns, or 0 if it is unknown.
func (o *Out) Width() int {
	if !o.TTY() {
		return 0
	}
	w, err := unix.IoctlGetWinsize(o.fd, unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(w.Col)
}

// Style is a text style, as an SGR parameter.
type Style string

// The styles use the terminal's own colours, so that they are legible on light and dark backgrounds.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint returns text in a style, or unchanged if the stream shows no styles.
func (o *Out) Paint(s Style, text string) string {
	if !o.colours || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
