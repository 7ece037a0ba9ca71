package agent

import (
	"cmp"
	"fmt"
	"slices"
)

// quiet system lines say nothing that a run or its reader needs.
var quietLines = map[string]bool{
	"status": true, "thinking_tokens": true, "hook_started": true, "hook_response": true, "hook_progress": true, "notification": true,
	"informational": true, "commands_changed": true, "ui_invalidate": true, "task_updated": true, "model_refusal_no_fallback": true,
	"local_command_output": true, "files_persisted": true, "post_turn_summary": true, "turn_preempted": true,
}

// system handles the lines by which the CLI tells of itself.
func (s *stream) system(l *wireLine) {
	switch l.Subtype {
	case "init":
		s.init(l)
	case "session_state_changed":
		s.mu.Lock()
		s.clock.Turn = l.State != "idle"
		s.rests = s.rests && !s.clock.Turn
		s.mu.Unlock()
		s.rest()
	case "background_tasks_changed":
		s.mu.Lock()
		// What becomes of it the agent is told in a turn of its own, so this is no rest yet, and the end of the turn before is past.
		if s.facts.Background = l.Tasks; l.Tasks == 0 && !s.clock.Ended.IsZero() {
			s.clock.Ended = s.now()
		}
		s.mu.Unlock()
	case "task_started":
		if l.Background {
			s.notice("Started in the background: " + orDash(s.redact.Head([]byte(l.Description), maxPreview)))
		}
	case "task_progress":
		s.log.Note(s.now(), "%s%s", who(&wireLine{Parent: "task", Agent: l.Agent}), l.Description)
	case "task_notification":
		s.log.Note(s.now(), "task %s: %s", orDash(l.Status), s.redact.Head([]byte(l.Summary), maxPreview))
	case "api_retry":
		text, class := s.gate.Trouble(), assistantErrors[l.Error]
		if text == "" {
			text = fmt.Sprintf("The model did not answer (%s).", orDash(l.Error))
		}
		if api := s.gate.Seen(); api != nil { // starts of the whole fleet slow down for it, so the CLI's word is not enough
			class = apiClass(api)
		}
		text = fmt.Sprintf("%s Trying again (%d of %d).", text, int(l.Attempt), int(l.MaxRetries))
		s.log.Note(s.now(), "! %s", text)
		s.event(Event{Kind: Notice, Text: text, Class: class})
		if hopeless(l.Error) {
			s.mu.Lock()
			s.facts.Hopeless = cmp.Or(s.facts.Hopeless, l.Error)
			s.mu.Unlock()
			s.on.Hopeless()
		}
	case "permission_denied":
		s.notice(l.Tool + " was refused.")
	case "model_fallback":
		s.notice("The model is overloaded; another one goes on.")
	case "compact_boundary":
		s.notice("The conversation was compacted.")
	default:
		if !quietLines[l.Subtype] {
			s.unknown("system/" + l.Subtype)
		}
	}
}

// init handles the line that begins every turn.
func (s *stream) init(l *wireLine) {
	s.mu.Lock()
	first := s.facts.Session == ""
	s.facts.Session = l.SessionID
	if s.facts.Model == "" {
		s.facts.Model = l.Model
	}
	s.clock.Turn, s.facts.Began, s.rests = true, true, false
	s.mu.Unlock()
	if first {
		s.log.Note(s.now(), "started: model %s, CLI %s, session %s", l.Model, l.CLIVersion, l.SessionID)
		s.event(Event{Kind: Started, Text: l.Model})
	}
	s.servers(l.Servers)
}

// servers notes which servers of tools are not there; each turn tells of all of them.
func (s *stream) servers(list []wireServer) {
	for _, m := range list {
		if (m.Status == "failed" || m.Status == "needs-auth") && !slices.Contains(s.missing, m.Name) {
			s.missing = append(s.missing, m.Name)
			s.notice(fmt.Sprintf("The MCP server %s is not available (%s); the agent works without its tools.", m.Name, m.Status))
		}
	}
}

// lifecycle follows the messages the CLI was given: each is queued, started and then completed or cancelled, also when several were
// taken together (observed).
func (s *stream) lifecycle(l *wireLine) {
	s.mu.Lock()
	s.facts.Followed = true
	s.mu.Unlock()
	switch l.State {
	case "started":
		s.event(Event{Kind: Taken, Text: l.Command})
	case "completed", "cancelled":
		s.mu.Lock()
		delete(s.sent, l.Command)
		s.mu.Unlock()
		s.rest()
	}
}

// rest says that the agent has nothing left to do, when that is so: the session is idle, nothing works in the background, and no message
// is on its way in. A result alone is the end of a turn only (claude-cli.md §10). One rest shows in several lines, the message that is done
// with and the session that is idle, and is told once: told again, it could pass for the next one, which is yet to come.
func (s *stream) rest() {
	s.mu.Lock()
	taken := len(s.sent) == 0 || !s.facts.Followed
	idle := !s.clock.Turn && taken && s.facts.Background == 0 && s.facts.Results > 0
	news := idle && !s.rests
	s.rests = idle
	s.mu.Unlock()
	if news {
		s.on.Idle()
	}
}
