// Package session generates the CLI's output in a long coding session, with lines in the CLI's real formats. A third of
// the bytes are message deltas of about 300 bytes, 40 % are tool results of 2 to 70 KB, and a sixth is in a few lines
// of 1 to 6 MB, from edits of large files and pictures.
package session

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// largeEvery is the number of bytes of a session for each very large line.
const largeEvery = 24 << 20

// Write writes a session of about size bytes, one turn from init until the session is idle, and returns its number of
// lines. Equal sizes give equal bytes. A size of 0 gives a turn with one short message.
func Write(out io.Writer, size int64) (lines int64, err error) {
	w := newWriter(out)
	w.line(initLine)
	w.line(stateLine, "running")
	large := int64(1 << 20)
	for w.written < size && w.err == nil {
		due := w.written >= large
		w.step(due)
		if due {
			large += largeEvery
		}
	}
	w.answer()
	w.line(resultLine, quote(w.text(600)))
	w.line(stateLine, "idle")
	if err := cmp.Or(w.err, w.out.Flush()); err != nil {
		return 0, fmt.Errorf("write session: %w", err)
	}
	return w.lines, nil
}

// writer writes one session.
type writer struct {
	out            *bufio.Writer
	random         *rand.Rand
	corpus         []string // lines of text to combine
	written, lines int64
	message        string // id of the message that is being written
	block          int    // its number of blocks so far
	steps          int
	err            error // of the output, the first
}

func newWriter(out io.Writer) *writer {
	//nolint:gosec // G404: every session must be the same
	w := &writer{out: bufio.NewWriterSize(out, 1<<20), random: rand.New(rand.NewPCG(1, 2))}
	w.corpus = corpus(w.random)
	return w
}

// line writes one line. Every line ends with the session's ID and a unique ID.
func (w *writer) line(format string, args ...any) {
	if w.err != nil {
		return
	}
	n, err := fmt.Fprintf(w.out, format+`,"session_id":"`+id+`","uuid":"%s"}`+"\n", append(args, w.uuid())...)
	w.err = err
	w.written += int64(n)
	w.lines++
}

// step is one model call that ends with a tool call, and the tool's result.
func (w *writer) step(large bool) {
	w.begin()
	w.thinking(w.between(300, 2500))
	w.say(w.between(80, 1200))
	tool := fmt.Sprintf("toolu_01Bench%012d", w.steps)
	switch {
	case large && w.steps%2 == 0:
		w.image(tool)
	case large:
		w.edit(tool)
	case w.random.IntN(2) == 0:
		w.read(tool)
	default:
		w.bash(tool)
	}
}

// answer is the last message of a session, without a tool call.
func (w *writer) answer() {
	w.begin()
	w.say(600)
	w.end("end_turn")
}

func (w *writer) begin() {
	w.steps++
	w.message, w.block = fmt.Sprintf("msg_01Bench%014d", w.steps), 0
	w.line(requestingLine)
	w.line(messageStartLine, w.message, w.between(100, 4000), w.message)
}

func (w *writer) end(reason string) {
	w.line(messageDeltaLine, reason, w.between(50, 2000), w.message)
	w.line(messageStopLine, w.message)
}

func (w *writer) thinking(size int) {
	text := w.text(size)
	w.line(blockStartLine, `{"type":"thinking","thinking":"","signature":""}`, w.block, w.message)
	w.pieces("thinking", "thinking_delta", text)
	signature := w.base64(300)
	w.line(deltaLine, "signature", quote(signature), "signature_delta", w.block, w.message)
	w.finish(fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"%s"}`, quote(text), signature))
}

func (w *writer) say(size int) {
	text := w.text(size)
	w.line(blockStartLine, `{"type":"text","text":""}`, w.block, w.message)
	w.pieces("text", "text_delta", text)
	w.finish(fmt.Sprintf(`{"type":"text","text":%s}`, quote(text)))
}

// use is the block with a tool call; input is a JSON object.
func (w *writer) use(tool, name, input string) {
	w.line(blockStartLine, fmt.Sprintf(`{"id":"%s","input":{},"name":"%s","type":"tool_use"}`, tool, name),
		w.block, w.message)
	w.pieces("partial_json", "input_json_delta", input)
	w.finish(fmt.Sprintf(`{"id":"%s","input":%s,"name":"%s","type":"tool_use"}`, tool, input, name))
	w.end("tool_use")
}

// finish writes the whole of a block and then its end: the CLI writes them in this order.
func (w *writer) finish(block string) {
	w.line(assistantLine, block, w.message, w.steps)
	w.line(blockStopLine, w.block, w.message)
	w.block++
}

// pieces cuts text into deltas of the size in which models stream.
func (w *writer) pieces(field, kind, text string) {
	for text != "" {
		n := min(w.between(8, 56), len(text))
		for n < len(text) && text[n]&0xC0 == 0x80 { // not inside a character
			n++
		}
		w.line(deltaLine, field, quote(text[:n]), kind, w.block, w.message)
		text = text[n:]
	}
}

func (w *writer) between(low, high int) int { return low + w.random.IntN(high-low) }

// quote is s as a JSON string, escaped as little as the CLI does.
func quote(s string) string {
	b, err := jsontext.AppendQuote(make([]byte, 0, len(s)+len(s)/8), s)
	if err != nil {
		panic("quote text of our own: " + err.Error())
	}
	return string(b)
}

func (w *writer) uuid() string {
	a, b := w.random.Uint64(), w.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&0xffffffffffff)
}

func (w *writer) base64(size int) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var b strings.Builder
	b.Grow(size + 10)
	for b.Len() < size {
		for bits := w.random.Uint64(); bits != 0; bits >>= 6 {
			b.WriteByte(alphabet[bits&63])
		}
	}
	return b.String()
}
