package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/runlog"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the output that a run keeps in memory. The log has all of it.
const (
	maxAnswer  = 4 << 20
	maxPartial = 64 << 10
	maxPreview = 1 << 10
	maxRaw     = 10  // the latest lines that are not of the protocol
	maxWords   = 300 // characters of such a line, or of an unknown one
)

// Handler receives what a Stream finds in the output. Its methods are called on the goroutine that reads the output,
// and must not block.
type Handler interface {
	// Event reports something that happened, already redacted.
	Event(e Event)
	// Idle says that the agent has nothing left to do. It is called once each time the agent comes to rest.
	Idle()
	// Retry says that the CLI repeats a request to the model. reason is the CLI's word for the error.
	Retry(reason string, attempt, limit int)
	// Used says what the conversation has used so far, as the CLI reports it.
	Used(usd float64, models map[string]ModelUsage)
	// Ask hands over a control request of the CLI, to be answered with Control.Answer.
	Ask(id string, q *Request)
}

// Config is what a Stream needs. All fields but Redactor and Names are required.
type Config struct {
	Redactor *redact.Redactor
	Log      *runlog.Log
	Control  *Control // receives the CLI's answers to control requests
	Handler  Handler
	// Names replaces what only the CLI knows by its name, in the CLI's own sentences about a failure.
	Names *strings.Replacer
	// Describe puts a tool call into words, without secrets. known is false for a tool that errand does not know.
	Describe func(tool string, input json.RawMessage) (words string, known bool)
}

// Stream interprets the CLI's output. Read and the unexported methods belong to the goroutine that reads stdout; the
// others may be called from any goroutine.
type Stream struct {
	Config
	now func() time.Time
	at  time.Time // when the output that is being handled was read

	message messageState
	blocks  blocks            // the texts that are arriving
	spoken  map[string]string // ends of texts that may be cut within a secret, by the agent's call; "": the main agent
	logged  []byte            // the line that is being handled, as the raw log will have it
	latest  outputLine        // reused for each line
	missing []string          // MCP servers that are known to be unavailable

	mu    sync.Mutex
	facts Facts
	clock Clock
	rests bool              // the handler knows that the agent is idle
	sent  map[string]bool   // messages that the CLI was given and has not completed
	tools map[string]string // open tool calls, in words

	stopped bool // the run is being stopped
}

// Clock is what a watchdog needs to know.
type Clock struct {
	Heard  time.Time // the latest line of any kind, or part of a long line
	Active time.Time // the latest sign of work
	Ended  time.Time // the latest end of a turn; zero before the first
	Turn   bool      // the agent has something to do
	Tool   bool      // a tool call is open, or a task runs in the background
}

// Facts are the parts of the output that the result of a run needs.
type Facts struct {
	Model, Session string
	Answered       string   // the model that wrote the latest message of the main agent
	Answers        []string // results that were answers
	AnswerBytes    int
	Last           *Result // the latest result
	LastSubtype    string
	Results        int
	Structured     jsontext.Value // the latest structured answer
	Began          bool           // the CLI has begun a turn
	Open           bool           // a turn had begun and not ended when the output ended
	Turns          int
	Tracked        bool   // the CLI reports what happens to each message
	Background     int    // tasks that are alive in the background
	AssistantError string // "error" of the latest assistant message
	Remedy         string // "remedy" in its "api_error_params"
	RateLimit      *RateLimit
	Partial        []byte   // what the main agent said since the latest answer
	Raw            []string // the latest lines that are not of the protocol, for an error
	Printed        []byte   // all such lines, up to maxPartial
	Strange        string   // the beginning of the last line, if it is of an unknown kind
	RawLines       int64
	Lines          int64
	CutLines       int64          // lines that were too long to decode
	Unknown        map[string]int // kinds of lines, and tools as "tool:<name>", that errand does not know
}

// NewStream returns a Stream of an output that has not begun.
func NewStream(c Config) *Stream {
	now := time.Now()
	if c.Names == nil {
		c.Names = strings.NewReplacer()
	}
	return &Stream{
		Config: c, now: time.Now, clock: Clock{Heard: now, Active: now},
		message: messageState{calls: map[int]*toolCall{}}, sent: map[string]bool{}, tools: map[string]string{},
		spoken: map[string]string{},
	}
}

// Stop notes that the run is being stopped: a tool call that ends in an error from now on was interrupted, and did not
// fail.
func (s *Stream) Stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
}

// Clock returns the current state for a watchdog.
func (s *Stream) Clock() Clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clock
	c.Tool = len(s.tools) > 0 || s.facts.Background > 0
	return c
}

// Sent records that the CLI is being given a message, so that the agent has something to do.
func (s *Stream) Sent(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[id] = true
	s.clock.Turn, s.clock.Active, s.rests = true, s.now(), false
}

// Touch records that something was done for the agent, so that its silence counts from now on.
func (s *Stream) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Active = s.now()
}

// Waiting reports whether the CLI was given a message that it has not completed.
func (s *Stream) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent) > 0 && s.facts.Tracked
}

// Unstructured reports whether the latest answer is good but lacks the structured form.
func (s *Stream) Unstructured() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.facts.Last
	return last != nil && !last.IsError && s.facts.Structured == nil
}

// Answers returns the number of answers so far.
func (s *Stream) Answers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.facts.Answers)
}

// Facts returns what the output said. Call it when Read has returned.
func (s *Stream) Facts() Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.facts
	f.Open = s.clock.Turn
	f.Partial = s.Redactor.Broken(f.Partial)
	return f
}

// Read reads the CLI's stdout to its end. It waits for nothing except the log's files.
func (s *Stream) Read(stdout io.Reader) {
	s.read(newLineReader(stdout), &assembler{limit: MaxLine})
}

func (s *Stream) read(in *lineReader, long *assembler) {
	for {
		p, err := in.Next()
		if err != nil {
			s.endBlock(true)
			s.reportRaw()
			s.Log.Flush()
			return
		}
		s.at = s.now()
		s.readPiece(p, long)
		if in.Drained() {
			s.Log.Flush()
		}
	}
}

// readPiece handles a line when it is whole, or its beginning when it is too long, and then appends it to the raw log,
// which has no pieces of a message's blocks: each block comes again as a whole.
func (s *Stream) readPiece(p piece, long *assembler) {
	line, whole := long.Add(p)
	if line == nil {
		s.hear(0) // a line of many megabytes may take longer than the CLI has time to answer a ping
		if long.lost {
			s.logEnd(p, p.text)
		}
		return
	}
	s.hear(1)
	if whole {
		s.logged = line
		if text := bytes.TrimRight(line, "\r\n"); len(text) > 0 {
			s.line(text)
		}
		if len(bytes.TrimSpace(s.logged)) > 0 {
			s.logEnd(p, s.logged)
		}
		s.logged = nil
	} else {
		s.cutLine(line[:min(len(line), headBytes)])
		s.logEnd(p, line)
	}
	long.Release()
}

// logEnd appends text that ends with a piece to the raw log, where every line has a newline.
func (s *Stream) logEnd(p piece, text []byte) {
	s.Log.Raw(text)
	if p.last && !bytes.HasSuffix(p.text, newline) {
		s.Log.BreakRaw()
	}
}

var newline = []byte("\n")

// hear records that the CLI has written something: so many lines, or a part of one.
func (s *Stream) hear(lines int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Heard = s.at
	s.facts.Lines += lines
	if lines > 0 {
		s.facts.Strange = ""
	}
}

// cutLine handles the beginning of a line that is too long. It is still a sign of life, and a question must be
// answered.
func (s *Stream) cutLine(line []byte) {
	s.mu.Lock()
	s.facts.CutLines++
	s.mu.Unlock()
	if l, ok := decodeHead(line); ok {
		l.line = line
		s.handle(&l)
	}
}

// line handles one whole line. It is decoded before it is redacted, since a secret could equal a word of the protocol,
// and an allowed tool call is answered with its own input. Everything that goes to logs, events and results is redacted
// there.
func (s *Stream) line(line []byte) {
	defer func() { s.latest = outputLine{} }() // a waiting run does not keep the line
	if s.latest.decode(line) {
		s.latest.line = line
		s.handle(&s.latest)
		return
	}
	// Several objects may share a line, or follow other text: losing the end of a turn or a question would stall the
	// run. An object inside another value is never read as a line, because a tool may have written it.
	text, at := 0, 0 // text is the start of what is not of the protocol
	ended := bytes.HasSuffix(s.logged, newline)
	for {
		dec := jsontext.NewDecoder(bytes.NewBuffer(line[at:]), lenient) // reads a Buffer in place
		v, err := dec.ReadValue()
		switch end := at + int(dec.InputOffset()); {
		case err == nil && s.latest.decode(v):
			s.raw(line[text : end-len(v)])
			s.latest.line = v
			s.handle(&s.latest)
			text, at = end, end
		case err == nil:
			at = end
		default:
			next := 0
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				next = trailingObjects(line[at:])
			} else if !ended && bytes.HasPrefix(bytes.TrimSpace(line[at:]), []byte(`{"type":"`)) {
				// The CLI was killed within a line of the protocol, whose text may be the second part of a secret.
				s.logged = bytes.Replace(s.logged, line[at:], nil, 1)
				line = line[:at]
			}
			if next == 0 {
				s.raw(line[text:])
				return
			}
			at += next
		}
	}
}

// trailingObjects returns the start of the objects at the end of text if they may be lines of the protocol, otherwise
// 0.
func trailingObjects(text []byte) int {
	at := 0
	for range 8 { // limits how often a long line is read
		next := bytes.Index(text[min(at+1, len(text)):], []byte(`{"type":"`))
		if next < 0 {
			return 0
		}
		at += 1 + next
		dec := jsontext.NewDecoder(bytes.NewBuffer(text[at:]), lenient)
		var err error
		for err == nil {
			err = dec.SkipValue()
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return 0
		case errors.Is(err, io.EOF):
			return at
		}
	}
	return 0
}

// raw records text that is not of the protocol.
func (s *Stream) raw(text []byte) {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return
	}
	shown := s.Redactor.Head(text, 4<<10)
	s.mu.Lock()
	f := &s.facts
	f.RawLines++
	f.Raw = append(f.Raw, redact.Clip(strings.TrimSpace(string(redact.Plain([]byte(shown)))), maxWords))
	f.Raw = f.Raw[max(0, len(f.Raw)-maxRaw):]
	if room := maxPartial - len(f.Printed); room > 0 {
		f.Printed = append(f.Printed, redact.Plain(text[:min(len(text), room)])...)
		f.Printed = append(f.Printed, '\n')
	}
	s.mu.Unlock()
	s.Log.Note(s.at, "[stdout] %s", shown)
}

// reportRaw reports the raw output of a CLI that exited without a result as its answer.
func (s *Stream) reportRaw() {
	s.mu.Lock()
	var text []byte
	if s.facts.Last == nil {
		text = s.Redactor.Broken(bytes.TrimSpace(s.facts.Printed))
	}
	s.mu.Unlock()
	s.message.newBlock = true
	s.addText(string(text), s.event)
}

// handle acts on a decoded line.
func (s *Stream) handle(l *outputLine) {
	if l.odd {
		s.unknown(l.Type + "/" + l.Subtype + " of another shape")
	}
	if l.showsWork() {
		s.mu.Lock()
		s.clock.Active = s.at
		s.mu.Unlock()
	}
	switch l.Type {
	case "stream_event":
		s.delta(l)
		if bytes.Contains(l.line, []byte(`"content_block_delta"`)) {
			s.logged = bytes.Replace(s.logged, l.line, nil, 1)
		}
	case "assistant":
		s.assistant(l)
	case "user":
		s.user(l)
	case "result":
		s.result(l)
	case "system":
		s.system(l)
	case "rate_limit_event":
		s.mu.Lock()
		s.facts.RateLimit = l.RateLimit
		s.mu.Unlock()
	case "control_request":
		if l.Request == nil {
			l.Request = &Request{Subtype: "of unknown form"} // it must be answered, or the CLI waits indefinitely
		}
		s.Handler.Ask(l.RequestID, l.Request)
	case "control_response":
		if l.Response != nil {
			s.usageAnswer(l.Response.Response)
			s.Control.answered(*l.Response)
		}
	case "control_cancel_request":
		s.Control.withdrawn(l.RequestID)
	case "command_lifecycle":
		s.trackMessage(l)
	case "tool_progress", "keep_alive", "auth_status", "conversation_reset", "prompt_suggestion", "tool_use_summary":
	case "error":
		s.unknown(l.Type)
		s.raw([]byte(errorWords(l.line)))
	default:
		s.unknown(l.Type)
		words := strings.ToValidUTF8(s.Redactor.Head(l.line, maxWords), "")
		s.mu.Lock()
		s.facts.Strange = redact.Clip(string(redact.Plain([]byte(words))), maxWords)
		s.mu.Unlock()
	}
}

// showsWork reports whether a line is a sign of work. Heartbeats continue while a tool hangs, and answers to control
// requests prove that the process lives, not that the agent works.
func (l *outputLine) showsWork() bool {
	return l.Type != "tool_progress" && l.Type != "keep_alive" && l.Type != "control_response"
}

// unknown counts a kind of line or tool that errand does not know, and notes the first of each kind in the log.
func (s *Stream) unknown(kind string) {
	s.mu.Lock()
	if s.facts.Unknown == nil {
		s.facts.Unknown = map[string]int{}
	}
	n := s.facts.Unknown[kind]
	room := n > 0 || len(s.facts.Unknown) < 100
	if room {
		s.facts.Unknown[kind] = n + 1
	}
	s.mu.Unlock()
	if room && n == 0 {
		s.Log.Note(s.at, "! the CLI wrote something unknown: %s", redact.Clip(kind, 100))
	}
}

func (s *Stream) notice(text string) {
	s.Log.Note(s.at, "! %s", text)
	s.event(Event{Kind: Notice, Text: text})
}

// event reports an event without secrets.
func (s *Stream) event(e Event) {
	e.Time = s.at
	e.Input = s.Redactor.JSON(e.Input)
	for _, field := range []*string{&e.Text, &e.Tool, &e.ToolID, &e.Parent, &e.Agent} {
		*field = s.Redactor.String(*field)
	}
	s.Handler.Event(e)
}
