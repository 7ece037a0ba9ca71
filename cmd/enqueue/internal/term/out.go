// Package term is what a command knows of the terminal it writes to: whether there is one, how wide it is, which colours it wants, and a
// status line that is rewritten below what is printed.
//
// It does not make text harmless: whoever prints what others have written passes it through internal/legible before. Nothing here may be
// used by several goroutines at once.
package term

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Out is a stream that a command writes to. It remembers that something could not be written, so that not everybody who writes has to ask.
type Out struct {
	w       io.Writer
	err     error
	fd      int  // of the terminal; -1: it is none
	colours bool // people want them, and the terminal has them
	dumb    bool // the terminal can only print
}

// NewOut looks at what w is. NO_COLOR (no-color.org) and TERM=dumb are respected.
func NewOut(w io.Writer, getenv func(string) string) *Out {
	o := &Out{w: w, fd: -1, dumb: getenv("TERM") == "dumb"}
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		o.fd = int(f.Fd())
		o.colours = !o.dumb && getenv("NO_COLOR") == ""
	}
	return o
}

// IsTerminal reports whether f is one: only terminals have a size.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

func (o *Out) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// Err is the first error there was; what has been written since may be missing as well.
func (o *Out) Err() error { return o.err }

func (o *Out) print(s string) { _, _ = io.WriteString(o, s) }

// TTY reports whether it is a terminal.
func (o *Out) TTY() bool { return o.fd >= 0 }

// Rewrites reports whether it is a terminal on which something can be written over.
func (o *Out) Rewrites() bool { return o.TTY() && !o.dumb }

// Width is the number of columns of the terminal at this moment; 0: it is none, or does not say.
func (o *Out) Width() int { return o.size().columns }

type size struct{ columns, rows int }

func (o *Out) size() size {
	if !o.TTY() {
		return size{}
	}
	w, err := unix.IoctlGetWinsize(o.fd, unix.TIOCGWINSZ)
	if err != nil {
		return size{}
	}
	return size{int(w.Col), int(w.Row)}
}

// Style is how words stand out.
type Style string

// The styles: the terminal's own colours, so that they are legible on light and dark.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint is text in a style, if the stream shows styles.
func (o *Out) Paint(s Style, text string) string {
	if !o.colours || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
