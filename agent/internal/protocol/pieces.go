package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// liveBlock is a text that is reported while it arrives, such as an answer that the model is writing.
type liveBlock struct {
	latest Event // its latest piece
	text   *redact.Stream
	raw    rawPieces
}

// rawPieces are the lines with pieces of a block that are not in the raw log yet. Redacted one by one, they would have
// the parts of a secret. So a line is held back as long as its text, and where a text has a secret, one line with the
// redacted text takes the place of the lines. Lines that are no pieces do not wait for it.
type rawPieces struct {
	lines        []byte
	given, shown []byte // the text of the lines, and what of it was reported
	open         bool   // the line that is being handled is a piece
}

// maxRawPieces bounds the lines of rawPieces, because a secret such as a key can be as long as an answer.
const maxRawPieces = 64 << 10

// piece reports a piece of a block, except for an end of it that may be the beginning of a secret. Only its text may
// have secrets. Pieces of one kind and tool call form a block, which endBlock ends.
func (s *Stream) piece(e Event) {
	if s.block.text == nil {
		s.block.text = s.Redactor.Stream()
	}
	if s.block.latest.Kind != e.Kind || s.block.latest.ToolID != e.ToolID {
		s.endBlock()
	}
	s.block.latest, s.block.raw.open = e, true
	s.block.raw.given = append(s.block.raw.given, e.Text...)
	s.reportBlock(s.block.text.Write([]byte(e.Text)))
}

// endBlock reports what was held back of the current block.
func (s *Stream) endBlock() {
	s.Log.EndText()
	if s.block.text != nil {
		s.reportBlock(s.block.text.Flush())
		s.settleRaw()
	}
}

func (s *Stream) reportBlock(text []byte) {
	if len(text) > 0 {
		s.block.raw.shown = append(s.block.raw.shown, text...)
		e := s.block.latest
		e.Time, e.Text = s.at, string(text)
		s.Handler.Event(e)
	}
}

// logPart appends a part of a line to the raw log before it is handled, because the line is too long to be held back.
func (s *Stream) logPart(p piece) {
	if p.first && p.last {
		return
	}
	if p.first {
		s.settleRaw()
	}
	s.Log.Raw(p.text)
}

// logLine appends a line to the raw log after it was handled, unless logPart has done so.
func (s *Stream) logLine(p piece) {
	k := &s.block.raw
	switch whole := p.first && p.last; {
	case whole && !k.open:
		s.Log.Raw(p.text)
	case whole:
		k.open, k.lines = false, append(k.lines, p.text...)
		if len(k.shown) == len(k.given) || !bytes.HasPrefix(k.given, k.shown) || len(k.lines) > maxRawPieces {
			s.settleRaw()
		}
	case p.last && k.open: // its own text is in the log, also the end of it that is held back
		if len(k.shown) > 0 && bytes.HasPrefix(k.given, k.shown) {
			s.Log.Raw(k.lines)
		}
		s.holdRaw()
		k.open, k.lines = false, k.lines[:0]
	}
}

// settleRaw writes the lines of the current block to the raw log, except for a text that is held back.
func (s *Stream) settleRaw() {
	k := &s.block.raw
	if bytes.Equal(k.given, k.shown) {
		s.Log.Raw(k.lines)
		k.lines, k.given, k.shown = k.lines[:0], k.given[:0], k.shown[:0]
		return
	}
	s.Log.Raw(rawPiece(s.block.latest.Kind, k.shown))
	s.holdRaw()
}

// holdRaw starts over with a line of the text that is held back.
func (s *Stream) holdRaw() {
	k := &s.block.raw
	k.given, k.shown = append(k.given[:0], s.block.text.Held()...), k.shown[:0]
	k.lines = append(k.lines[:0], rawPiece(s.block.latest.Kind, k.given)...)
}

// rawPiece returns the line of a piece with this text; nothing if it is empty.
func rawPiece(kind Kind, text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	field, of := "text", "text_delta"
	switch kind {
	case Thinking:
		field, of = "thinking", "thinking_delta"
	case ToolInput:
		field, of = "partial_json", "input_json_delta"
	}
	quoted, _ := json.Marshal(string(text)) // a string can be marshaled
	const form = `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":%q,%q:%s}}}` + "\n"
	return fmt.Appendf(nil, form, of, field, quoted)
}
