package agent

import (
	"fmt"
	"sync"
	"time"
)

// Bounds of what a run keeps in memory of its output; the log has everything.
const (
	maxAnswer  = 4 << 20
	maxPartial = 64 << 10
	maxPreview = 1 << 10
)

// stream makes sense of the CLI's output. Its methods are called by the goroutine that reads stdout, except Snapshot and Clock,
// which any may call. What it learns that the run must act on, it says through the functions in on.
type stream struct {
	dir    string
	redact *Redactor
	log    *runLog
	emit   func(Event)
	on     signals
	now    func() time.Time

	message string // the main agent's latest, by its id
	talked  bool   // it had text
	pieces  bool   // its text came in pieces, and need not be taken from its end
	broken  bool   // it has begun and not ended
	before  int    // length of facts.Partial when it began
	spoke   bool   // any message had text

	mu     sync.Mutex
	facts  facts
	active time.Time
	turn   bool // the agent has something to do
	ended  time.Time
	tools  map[string]bool // open tool calls
}

// signals are how the stream moves the run. None of them blocks.
type signals struct {
	Idle     func()                     // nothing left to do
	Hopeless func()                     // the CLI retries what cannot succeed
	Answered func(wireResponse)         // to a control request of ours
	Asked    func(string, *wireRequest) // a control request of the CLI's
	Withdrew func(id string)
}

// facts are what the output said, as far as the result needs it.
type facts struct {
	Model, Session string
	Answers        []string    // results that were answers
	Said           int         // their bytes
	Last           *wireResult // the latest result
	LastSubtype    string
	Results        int
	Began          bool // the CLI has begun a turn at all
	Open           bool // a turn had begun and not ended; set when the output has ended
	Turns          int
	AssistantError string // "error" of the latest assistant message
	RateLimit      *wireRateLimit
	RetryError     string // why the model's API was asked again, latest
	Partial        []byte // what the main agent said since the latest answer
	Resources      Resources
}

// Clock tells what the watchdog needs.
func (s *stream) Clock() (active time.Time, toolOpen, turnOpen bool, ended time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active, len(s.tools) > 0, s.turn, s.ended
}

// Begin notes that a message was sent, so that the agent has something to do again.
func (s *stream) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn, s.active = true, s.now()
}

// Read consumes the CLI's stdout to its end. It waits for nothing but the log's file.
func (s *stream) Read(l *lines) {
	for {
		piece, cut, more, err := l.Next()
		if err != nil {
			s.log.Flush()
			return
		}
		clean := s.redact.Bytes(piece)
		s.log.Raw(clean, !more)
		if l.Drained() {
			s.log.Flush()
		}
		s.mu.Lock()
		if !more {
			s.facts.Resources.Lines++
		}
		if cut && !more {
			s.facts.Resources.Cut++
		}
		s.mu.Unlock()
		if cut || len(piece) == 0 {
			continue
		}
		s.line(piece)
	}
}

// line handles one whole line. It is read as it came, since a secret could stand for a word of the protocol, and an allowed tool call is
// answered with its own input; what leaves for logs, events and results is redacted there.
func (s *stream) line(piece []byte) {
	l, ok := decode(piece)
	if !ok {
		s.mu.Lock()
		s.facts.Resources.Raw++
		s.mu.Unlock()
		s.log.Note(s.now(), "[stdout] %s", clip(string(piece), 4<<10))
		return
	}
	if l.odd {
		s.unknown(l.Type + "/" + l.Subtype + " of another shape")
	}
	if l.alive() {
		s.mu.Lock()
		s.active = s.now()
		s.mu.Unlock()
	}
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
			s.on.Answered(*l.Response)
		}
	case "control_cancel_request":
		s.on.Withdrew(l.RequestID)
	case "tool_progress", "keep_alive", "command_lifecycle", "auth_status", "conversation_reset", "prompt_suggestion":
	default:
		s.unknown(l.Type)
	}
}

// alive reports whether a line is a sign of work. Heartbeats go on for as long as a hung tool hangs, and answers to our own
// requests prove the process, not the agent.
func (l wireLine) alive() bool {
	switch l.Type {
	case "tool_progress", "keep_alive", "control_response":
		return false
	}
	return true
}

func (s *stream) unknown(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.facts.Resources.Unknown == nil {
		s.facts.Resources.Unknown = map[string]int{}
	}
	if len(s.facts.Resources.Unknown) < 100 {
		s.facts.Resources.Unknown[kind]++
	}
}

func (s *stream) system(l wireLine) {
	switch l.Subtype {
	case "init":
		s.mu.Lock()
		first := s.facts.Session == ""
		s.facts.Session = l.SessionID
		if s.facts.Model == "" {
			s.facts.Model = l.Model
		}
		s.turn, s.facts.Began = true, true
		s.mu.Unlock()
		if first {
			s.log.Note(s.now(), "started: model %s, CLI %s, session %s", l.Model, l.CLIVersion, l.SessionID)
			s.event(Event{Kind: Started, Text: l.Model})
		}
	case "session_state_changed":
		s.mu.Lock()
		s.turn = l.State != "idle"
		idle := l.State == "idle" && s.facts.Results > 0
		s.mu.Unlock()
		if idle {
			s.on.Idle()
		}
	case "api_retry":
		s.notice(fmt.Sprintf("The model did not answer (%s), trying again.", orDash(l.Error)))
		s.mu.Lock()
		s.facts.RetryError = l.Error
		s.mu.Unlock()
		if hopeless(l.Error) {
			s.on.Hopeless()
		}
	case "permission_denied":
		s.notice(l.Tool + " was refused.")
	case "model_fallback":
		s.notice("The model is overloaded; another one goes on.")
	case "compact_boundary":
		s.notice("The conversation was compacted.")
	}
}

func (s *stream) notice(text string) {
	s.log.Note(s.now(), "! %s", text)
	s.event(Event{Kind: Notice, Text: text})
}

// event hands on what may be seen.
func (s *stream) event(e Event) {
	e.Time = s.now()
	e.Text, e.Input = s.redact.String(e.Text), s.redact.Bytes(e.Input)
	s.emit(e)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
