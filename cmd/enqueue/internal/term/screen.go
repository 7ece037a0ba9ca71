package term

import "strings"

// The orders of a terminal that a status line needs; any that understands VT100 takes them (ECMA-48, DEC STD 070).
const (
	save    = "\x1b7" // remember where the cursor is
	restore = "\x1b8" // and go back there
	index   = "\x1bD" // one line down, which scrolls at the bottom
	reverse = "\x1bM" // one line up
	below   = "\x1b[B\r"
	clear   = "\x1b[J" // all behind and below the cursor
)

// Screen prints text that comes in pieces, lines about it, and a status line below both, which is not part of either: it is taken away
// before anything is printed and comes back after it. Without a terminal there is no status line.
type Screen struct {
	text, side *Out // where the text goes, and the lines
	foot       *Out // where the status line goes

	status string
	shown  bool
	on     size // of the terminal that it was shown on
	mid    bool // the text is in the middle of a line
	length int  // of that line, in columns
	column int  // where in the terminal's line it goes on, as far as can be told
	said   bool // some text at all
}

// NewScreen takes streams that may be the same, or the same terminal.
func NewScreen(text, side, foot *Out) *Screen { return &Screen{text: text, side: side, foot: foot} }

// Said reports whether any text was printed.
func (s *Screen) Said() bool { return s.said }

// Live reports whether there is a status line.
func (s *Screen) Live() bool { return s.foot.Rewrites() }

// Text prints a piece of text.
func (s *Screen) Text(piece string) {
	if piece == "" {
		return
	}
	s.hide()
	s.text.print(piece)
	s.said, s.mid = true, !strings.HasSuffix(piece, "\n")
	s.advance(piece)
	s.show()
}

// Line prints a line of its own; a line of text in progress is ended before. It may be several lines.
func (s *Screen) Line(line string) { s.line(s.side, line) }

// Note prints a line where the status line is: for the person who looks on, and not for what reads the rest.
func (s *Screen) Note(line string) { s.line(s.foot, line) }

func (s *Screen) line(to *Out, line string) {
	s.hide()
	s.end()
	to.print(strings.TrimRight(line, "\n") + "\n")
	s.show()
}

// Newline ends a line of text in progress.
func (s *Screen) Newline() {
	s.hide()
	s.end()
	s.show()
}

func (s *Screen) end() {
	if s.mid {
		s.text.print("\n")
	}
	s.mid, s.column, s.length = false, 0, 0
}

// Status sets what the status line says; empty: there is none.
func (s *Screen) Status(line string) {
	if line == s.status && (s.shown || line == "") {
		return
	}
	s.hide()
	s.status = line
	s.show()
}

// advance keeps track of the column, to know when the terminal is about to break the line.
func (s *Screen) advance(piece string) {
	columns := s.text.Width()
	for _, r := range piece {
		n := cells(r)
		switch r {
		case '\n':
			s.column, s.length = 0, 0
			continue
		case '\t':
			n = 8 - s.column%8
		}
		s.length += n
		if s.column += n; s.column > columns {
			s.column = n
		}
	}
}

// hide takes the status line away. It does not rely on where the cursor is, for the terminal itself echoes what is typed; except after its
// size has changed: terminals then move text and cursor, and break lines anew, but few move the place that was remembered.
func (s *Screen) hide() {
	if !s.shown {
		return
	}
	s.shown = false
	now := s.foot.size()
	if now == s.on {
		s.foot.print(restore + clear)
		return
	}
	if s.column > 0 && now.columns > 0 {
		s.column = (s.length-1)%now.columns + 1
	}
	s.foot.print(clear)
}

// show writes the status line: where the text would go on, or below a line of text in progress. At the right edge it waits for more text,
// because to look away from there makes a terminal forget that it has to break the line.
func (s *Screen) show() {
	s.on = s.foot.size()
	columns := s.on.columns
	if !s.Live() || s.status == "" || columns < 20 {
		return
	}
	down := ""
	if s.mid && s.text.TTY() {
		if s.column >= columns {
			return
		}
		down = below
		s.foot.print(index + reverse)
	}
	s.foot.print(save + down + s.foot.Paint(Dim, Cut(s.status, columns-4)) + restore)
	s.shown = true
}
