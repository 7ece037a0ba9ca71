package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/go-json-experiment/json/jsontext"
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

// blocks are the texts that are reported while they arrive. The answer goes on in the next message where the maximum of
// tokens cut it, perhaps within a secret, and a thought may come between.
type blocks struct {
	answer liveBlock
	aside  liveBlock // a thought, or the input of a tool call

	line   []byte // the line that is being handled, unless it is long or among the lines of a block
	others bool   // it is not of the message that has the answer
}

// begin begins with a line, or a part of a long one.
func (b *blocks) begin(p piece) {
	b.line, b.others = nil, false
	if p.first && p.last {
		b.line = p.text
	}
}

// piece reports a piece of a block, except for an end of it that may be the beginning of a secret. Only its text may
// have secrets. Pieces of one kind and tool call form a block, which endBlock ends.
func (s *Stream) piece(e Event) {
	b := &s.blocks.aside
	if e.Kind == Text {
		b = &s.blocks.answer
	}
	if b.text == nil {
		b.text = s.Redactor.Stream()
	}
	if b.latest.Kind != e.Kind || b.latest.ToolID != e.ToolID {
		s.end(b)
	}
	b.latest, b.raw.open = e, true
	b.raw.lines, s.blocks.line = append(b.raw.lines, s.blocks.line...), nil
	b.raw.given = append(b.raw.given, e.Text...)
	s.reportBlock(b, b.text.Write([]byte(e.Text)))
}

// endBlock reports what was held back of the current block. An answer that its message cut, or may have cut, is not at
// its end.
func (s *Stream) endBlock(answer bool) {
	s.Log.EndText(thinks)
	s.end(&s.blocks.aside)
	if answer {
		s.Log.EndText("")
		s.end(&s.blocks.answer)
	}
}

func (s *Stream) end(b *liveBlock) {
	if b.text != nil {
		s.reportBlock(b, b.text.Break()) // it may have been broken off
		s.settleRaw(b)
	}
}

func (s *Stream) reportBlock(b *liveBlock, text []byte) {
	if len(text) > 0 {
		b.raw.shown = append(b.raw.shown, text...)
		e := b.latest
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
		s.settleRaw(&s.blocks.aside)
		s.settleRaw(&s.blocks.answer)
	}
	s.Log.Raw(s.blocks.withoutHalves(p.text))
}

// logLine appends a line to the raw log after it was handled, unless logPart has done so.
func (s *Stream) logLine(p piece) {
	b := &s.blocks.aside
	if s.blocks.answer.raw.open {
		b = &s.blocks.answer
	}
	k := &b.raw
	switch whole := p.first && p.last; {
	case whole && !k.open:
		s.Log.Raw(s.blocks.withoutHalves(p.text))
	case whole:
		k.open = false
		if len(k.shown) == len(k.given) || !bytes.HasPrefix(k.given, k.shown) || len(k.lines) > maxRawPieces {
			s.settleRaw(b)
		}
	case p.last && k.open: // its own text is in the log, also the end of it that is held back
		if len(k.shown) > 0 && bytes.HasPrefix(k.given, k.shown) {
			s.Log.Raw(k.lines)
		}
		b.holdRaw()
		k.open, k.lines = false, k.lines[:0]
	}
}

// settleRaw writes the lines of a block to the raw log, except for a text that is held back.
func (s *Stream) settleRaw(b *liveBlock) {
	k := &b.raw
	if bytes.Equal(k.given, k.shown) {
		s.Log.Raw(k.lines)
	} else {
		s.Log.Raw(rawPiece(b.latest.Kind, k.shown))
	}
	b.holdRaw()
}

// holdRaw starts over with a line of the text that is held back.
func (b *liveBlock) holdRaw() {
	k := &b.raw
	k.given, k.shown = k.given[:0], k.shown[:0]
	if b.text != nil {
		k.given = append(k.given, b.text.Held()...)
	}
	k.lines = append(k.lines[:0], rawPiece(b.latest.Kind, k.given)...)
}

// withoutHalves returns a line that has whole texts, or a part of it, without the halves of a secret between whose
// words a message was cut. Such a line comes after its pieces, which have all words. Lines of other messages stay.
func (b *blocks) withoutHalves(line []byte) []byte {
	if b.others {
		return line
	}
	for _, text := range []*redact.Stream{b.answer.text, b.aside.text} {
		if text == nil {
			continue
		}
		first, last := text.Halves()
		if len(first) > 0 { // only an answer goes on in another message
			for _, field := range []string{`"text":"`, `"result":"`} {
				line = bytes.ReplaceAll(line, slices.Concat([]byte(field), inQuotes(first)), []byte(field+"[redacted]"))
			}
		}
		if len(last) > 0 {
			line = bytes.ReplaceAll(line, append(inQuotes(last), '"'), []byte(`[redacted]"`))
		}
	}
	return line
}

// inQuotes returns a text as a JSON string has it.
func inQuotes(text []byte) []byte {
	quoted, _ := jsontext.AppendQuote(nil, text) // at worst, it replaces what is no text
	return quoted[1 : len(quoted)-1]
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
