package term

import "strings"

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
