package agent

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what a run keeps in memory of its output; the log has everything.
const (
	maxAnswer  = 4 << 20
	maxPartial = 64 << 10
	maxPreview = 1 << 10
)

// stream makes sense of the CLI's output. Its methods are called by the goroutine that reads stdout, except those with a capital beside
// Read, which any may call.
type stream struct {
	dir    string
	redact *Redactor
	log    *runLog
	emit   func(Event)
	on     signals
	now    func() time.Time

	message string        // the main agent's latest, by its id
	blocks  []string      // its finished texts
	fresh   bool          // the next text begins a block
	pieces  bool          // its text came in pieces, and need not be taken from its end
	broken  bool          // it has begun and not ended
	before  int           // length of facts.Partial when it began
	spoke   bool          // any message had text
	calls   map[int]*call // the tool calls it is writing, by the index of their block
	block   liveBlock     // the one that is coming
	latest  wireLine      // of the output; nothing keeps it

	missing []string // servers of tools that are known not to be there

	resume *Session         // the conversation that goes on; nil: a new one. Read-only
	gate   *gateway.Gateway // nil: the run goes direct
	usd    float64          // what the run has used up, as it was told last
	usage  Usage

	mu    sync.Mutex
	facts facts
	clock clock
	rests bool              // the rest that the agent has come to has been told; until there is something to do again
	sent  map[string]bool   // messages that the CLI has been given and is not done with
	tools map[string]string // open tool calls, in words
}

// clock is what the watchdog goes by.
type clock struct {
	Heard  time.Time // the latest line of any kind, or a part of a long one
	Active time.Time // the latest sign of work
	Ended  time.Time // the latest end of a turn; zero before the first
	Turn   bool      // the agent has something to do
	Tool   bool      // a tool call is open, or a task in the background
}

// signals are how the stream moves the run. None of them blocks.
type signals struct {
	Idle     func()                     // nothing left to do; once until there was something again
	Hopeless func()                     // the CLI retries what cannot succeed
	Answered func(wireResponse)         // to a control request of ours
	Asked    func(string, *wireRequest) // a control request of the CLI's
	Withdrew func(id string)
}

// facts are what the output said, as far as the result needs it.
type facts struct {
	Model, Session string
	Answered       string      // the model that wrote the latest message of the main agent
	Answers        []string    // results that were answers
	Said           int         // their bytes
	Last           *wireResult // the latest result
	LastSubtype    string
	Results        int
	Structured     jsontext.Value // the latest object that was given
	Began          bool           // the CLI has begun a turn at all
	Open           bool           // a turn had begun and not ended; set when the output has ended
	Turns          int
	Followed       bool   // the CLI tells what becomes of each message
	Background     list   // tasks that are alive in the background
	AssistantError string // "error" of the latest assistant message
	RateLimit      *wireRateLimit
	Hopeless       string   // the first error for which the model's API was asked again in vain
	Partial        []byte   // what the main agent said since the latest answer
	Raw            []string // the latest of what was no line of the protocol
	Resources      Resources
}

// Clock tells what the watchdog needs.
func (s *stream) Clock() clock {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clock
	c.Tool = len(s.tools) > 0 || s.facts.Background > 0
	return c
}

// Sent notes that the CLI is being given a message, so that the agent has something to do.
func (s *stream) Sent(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[id] = true
	s.clock.Turn, s.clock.Active, s.rests = true, s.now(), false
}

// Touch notes that something was done for the agent, so that its silence counts from now on.
func (s *stream) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Active = s.now()
}

// Waiting reports whether the CLI has been given a message that it is not done with.
func (s *stream) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent) > 0 && s.facts.Followed
}

// Unstructured reports that the latest answer is a good one without the object it was to have.
func (s *stream) Unstructured() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.facts.Last
	return last != nil && !last.IsError && s.facts.Structured == nil
}

// Answers counts the answers so far.
func (s *stream) Answers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.facts.Answers)
}

// Read consumes the CLI's stdout to its end. It waits for nothing but the log's files.
func (s *stream) Read(in *lines, long *assembler) {
	for {
		p, err := in.Next()
		if err != nil {
			s.settle()
			s.leave()
			s.log.Flush()
			return
		}
		s.log.Raw(p.text)
		if !p.last {
			s.hear() // a line of many megabytes may take longer than the CLI has to answer a ping
		}
		if line, whole := long.Add(p); line != nil {
			s.count(whole)
			if line = bytes.TrimRight(line, "\r\n"); whole && len(line) > 0 {
				s.line(line)
			} else if l, ok := decodeHead(line); ok {
				s.handle(&l) // a sign of life all the same, and a question is answered
			}
			long.Release()
		}
		if in.Drained() {
			s.log.Flush()
		}
	}
}

// hear notes that the CLI has written something, whatever it is.
func (s *stream) hear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock.Heard = s.now()
}

func (s *stream) count(whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts.Resources.Lines++
	if !whole {
		s.facts.Resources.Cut++
	}
}

// line handles one whole line. It is read as it came, since a secret could stand for a word of the protocol, and an allowed tool call is
// answered with its own input; what leaves for logs, events and results is redacted there.
func (s *stream) line(line []byte) {
	if s.latest.decode(line) {
		s.handle(&s.latest)
		return
	}
	// Several objects on one line, or text printed before one: to lose an end or a question would stall the run. An object inside another
	// value is never read as a line, because a tool may have written it.
	text, at := 0, 0 // text is where what is no line of the protocol begins
	for {
		dec := jsontext.NewDecoder(bytes.NewBuffer(line[at:]), lenient) // reads a Buffer where it is
		v, err := dec.ReadValue()
		switch end := at + int(dec.InputOffset()); {
		case err == nil && s.latest.decode(v):
			s.raw(line[text : end-len(v)])
			s.handle(&s.latest)
			text, at = end, end
		case err == nil:
			at = end
		default:
			next := 0
			if !errors.Is(err, io.ErrUnexpectedEOF) { // else a value that lacks its end
				next = objectsAtEnd(line[at:])
			}
			if next == 0 {
				s.raw(line[text:])
				return
			}
			at += next
		}
	}
}

// objectsAtEnd returns where the objects begin with which text ends, if they may be lines of the protocol; 0: there are none.
func objectsAtEnd(text []byte) int {
	at := 0
	for range 8 { // bounds how often a long line is read
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

// maxRaw is how many of the latest lines that are none of the protocol are kept, for a CLI that ends without a result.
const maxRaw = 10

// raw notes something that is no line of the protocol.
func (s *stream) raw(text []byte) {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return
	}
	shown := s.redact.Head(text, 4<<10)
	s.mu.Lock()
	s.facts.Resources.Raw++
	s.facts.Raw = append(s.facts.Raw, redact.Clip(strings.TrimSpace(string(redact.Plain([]byte(shown)))), 300))
	s.facts.Raw = s.facts.Raw[max(0, len(s.facts.Raw)-maxRaw):]
	s.mu.Unlock()
	s.log.Note(s.now(), "[stdout] %s", shown)
}

// leave tells what a CLI printed that has left without a result: it is all the answer there is.
func (s *stream) leave() {
	s.mu.Lock()
	text := ""
	if s.facts.Last == nil {
		text = strings.TrimSpace(strings.Join(s.facts.Raw, "\n"))
	}
	s.mu.Unlock()
	s.fresh = true
	s.say(text, s.event)
}

// handle acts on what a line says.
func (s *stream) handle(l *wireLine) {
	if l.odd {
		s.unknown(l.Type + "/" + l.Subtype + " of another shape")
	}
	s.mu.Lock()
	s.clock.Heard = s.now()
	if l.alive() {
		s.clock.Active = s.clock.Heard
	}
	s.mu.Unlock()
	switch l.Type {
	case "stream_event":
		s.delta(l)
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
			l.Request = &wireRequest{Subtype: "of a shape errand does not know"} // answered all the same, or the CLI waits for ever
		}
		s.on.Asked(l.RequestID, l.Request)
	case "control_response":
		if l.Response != nil {
			s.counted(l.Response.Response)
			s.on.Answered(*l.Response)
		}
	case "control_cancel_request":
		s.on.Withdrew(l.RequestID)
	case "command_lifecycle":
		s.lifecycle(l)
	case "tool_progress", "keep_alive", "auth_status", "conversation_reset", "prompt_suggestion", "tool_use_summary":
	default:
		s.unknown(l.Type)
	}
}

// alive reports whether a line is a sign of work. Heartbeats go on for as long as a hung tool hangs, and answers to our own
// requests prove the process, not the agent.
func (l *wireLine) alive() bool {
	switch l.Type {
	case "tool_progress", "keep_alive", "control_response":
		return false
	}
	return true
}

// unknown counts a kind of line that this version does not know, and notes its first in the log for people.
func (s *stream) unknown(kind string) {
	s.mu.Lock()
	if s.facts.Resources.Unknown == nil {
		s.facts.Resources.Unknown = map[string]int{}
	}
	n := s.facts.Resources.Unknown[kind]
	room := n > 0 || len(s.facts.Resources.Unknown) < 100
	if room {
		s.facts.Resources.Unknown[kind] = n + 1
	}
	s.mu.Unlock()
	if room && n == 0 {
		s.log.Note(s.now(), "! the CLI wrote something unknown: %s", redact.Clip(kind, 100))
	}
}

func (s *stream) notice(text string) {
	s.log.Note(s.now(), "! %s", text)
	s.event(Event{Kind: Notice, Text: text})
}

// event hands on what may be seen.
func (s *stream) event(e Event) {
	e.Time = s.now()
	e.Text, e.Input = s.redact.String(e.Text), s.redact.JSON(e.Input)
	e.Tool, e.ToolID, e.Agent = s.redact.String(e.Tool), s.redact.String(e.ToolID), s.redact.String(e.Agent) // the model's words, too
	s.emit(e)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
