// Package term writes to a terminal: it detects one, measures it, styles text and draws a status line below what is
// printed.
//
// It does not sanitize text: callers pass text from other people through internal/display first. Its types are not safe
// for concurrent use.
package term

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/text/width"
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

// erase returns to the start of the line and clears it and everything below (ECMA-48).
const erase = "\r\x1b[J"

// minWidth is the narrowest terminal that gets a status line.
const minWidth = 20

// Screen prints streamed text, lines about it, and a status line below both. The status line is erased before anything
// else is printed and drawn again afterwards. It is hidden while a line of text on the same terminal is incomplete, and
// it does not exist without a terminal.
type Screen struct {
	text, side *Out // where text and lines go
	foot       *Out // where the status line goes

	status  string
	shown   bool
	midLine bool // the last text did not end its line
	printed bool // some text was printed
}

// NewScreen returns a screen that prints text, lines and the status line to three streams, which may be the same
// terminal.
func NewScreen(text, side, foot *Out) *Screen { return &Screen{text: text, side: side, foot: foot} }

// Printed reports whether any text was printed.
func (s *Screen) Printed() bool { return s.printed }

// Live reports whether the terminal can show a status line.
func (s *Screen) Live() bool { return s.foot.Rewrites() }

// Text prints a piece of text.
func (s *Screen) Text(piece string) {
	if piece == "" {
		return
	}
	s.hide()
	s.text.print(piece)
	s.printed, s.midLine = true, !strings.HasSuffix(piece, "\n")
	s.show()
}

// Line prints one or more lines to the side stream, after it ended an incomplete line of text.
func (s *Screen) Line(line string) { s.line(s.side, line) }

// Note prints a line where the status line is: it is for the person who watches, not for a program that reads the
// output.
func (s *Screen) Note(line string) { s.line(s.foot, line) }

func (s *Screen) line(to *Out, line string) {
	s.hide()
	s.endLine()
	to.print(strings.TrimRight(line, "\n") + "\n")
	s.show()
}

// Newline ends an incomplete line of text.
func (s *Screen) Newline() {
	s.hide()
	s.endLine()
	s.show()
}

func (s *Screen) endLine() {
	if s.midLine {
		s.text.print("\n")
	}
	s.midLine = false
}

// Status sets the status line. An empty line removes it.
func (s *Screen) Status(line string) {
	if line == s.status && (s.shown || line == "") {
		return
	}
	s.hide()
	s.status = line
	s.show()
}

func (s *Screen) hide() {
	if s.shown {
		s.foot.print(erase)
	}
	s.shown = false
}

// show draws the status line. It leaves four columns free for what the terminal echoes, such as ^C.
func (s *Screen) show() {
	columns := s.foot.Width()
	if !s.Live() || s.status == "" || columns < minWidth || s.midLine && s.text.TTY() {
		return
	}
	s.foot.print(s.foot.Paint(Dim, Cut(s.status, columns-4)))
	s.shown = true
}

// Cells returns the number of columns that text without control characters takes: two for a wide character (Unicode UAX
// #11, which includes most emoji), none for a combining mark.
func Cells(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens text to at most n columns and marks the cut with an ellipsis. If n is 0 or less, the text is unchanged.
func Cut(s string, n int) string {
	if n <= 0 || Cells(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if used += cells(r); used > n-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
}

// Pad appends blanks to text up to n columns.
func Pad(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-Cells(s)))
}
