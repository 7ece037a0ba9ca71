package agent

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Message is one thing a person said.
type Message struct {
	ID   string // UUID, echoed by the CLI in its lifecycle lines; empty: one is made
	Text string
	// Composed marks text that was put together from outside sources: the CLI then does not look for /commands and
	// @files in it.
	Composed bool
	Files    []File // what was sent along; images and PDFs are shown to the model, other files are quoted as text
	Model    string // the conversation goes on with this model; empty: with the one it has
	Mode     Mode   // the conversation goes on in this mode; empty: in the one it has
}

// File is something sent along with a message.
type File struct {
	Name string // as people know it
	Type string // media type, such as image/png
	Data []byte
}

// Mode is how free the agent is within its profile.
type Mode string

// The modes.
const (
	Act  Mode = "default" // it works
	Plan Mode = "plan"    // it changes nothing, and answers with what it would do
)

// Turn is a piece of an earlier conversation.
type Turn struct {
	Role  Role   `json:"role"`
	Tool  string `json:"tool,omitempty"` // of ToolOutput: its name
	Text  string `json:"text"`
	Files []File `json:"files,omitempty"`
}

// Role is who said something.
type Role string

// The roles.
const (
	User       Role = "user"
	Assistant  Role = "assistant"
	ToolOutput Role = "tool"
)

// builtins are commands of the CLI that are about the session itself, or about the terminal of a person who is not there. They would be
// carried out without the model, and leave a conversation that its thread does not know about.
var builtins = map[string]bool{
	"add-dir": true, "agents": true, "auto-mode-setup": true, "autocompact": true, "bug": true, "clear": true, "color": true, "compact": true,
	"config": true, "context": true, "cost": true, "doctor": true, "effort": true, "exit": true, "fast": true, "focus": true, "goal": true,
	"heapdump": true, "help": true, "hooks": true, "insights": true, "list-agents": true, "login": true, "logout": true, "loop": true,
	"mcp": true, "memory": true, "model": true, "output-style": true, "permissions": true, "quit": true, "recap": true,
	"reload-plugins": true, "reload-skills": true, "rename": true, "resume": true, "status": true, "statusline": true,
	"team-onboarding": true, "update-config": true, "usage": true, "vim": true, "workflow-launch-exec": true,
}

// CheckPrompt says in one sentence what is wrong with a person's words as a prompt. The project's own /commands and @agents are fine; the
// CLI's commands about its session are not, because nobody sits at its terminal.
func CheckPrompt(text string) error {
	word, found := strings.CutPrefix(strings.TrimSpace(text), "/")
	if !found {
		return nil
	}
	if i := strings.IndexFunc(word, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' }); i >= 0 {
		word = word[:i]
	}
	if builtins[word] {
		return fmt.Errorf("/%s is a command for the terminal of Claude Code and does nothing here: say in words what you want", word)
	}
	return nil
}

// check finds what makes a message unfit for the CLI.
func (m Message) check() error {
	if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
		return fmt.Errorf("the message is empty")
	}
	if m.Model != "" && !argument.MatchString(m.Model) {
		return fmt.Errorf("%q is not the name of a model", m.Model)
	}
	if m.Mode != "" && m.Mode != Act && m.Mode != Plan {
		return fmt.Errorf("%q is not a mode", m.Mode)
	}
	if !m.Composed {
		return CheckPrompt(m.Text)
	}
	return nil
}

// line is the message in the CLI's form. A user message without a role would kill the CLI (claude-cli.md §5). Without query it is put
// into the conversation and not answered.
func (m Message) line(query bool) any {
	type message struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	l := struct {
		Type     string  `json:"type"`
		UUID     string  `json:"uuid"`
		Message  message `json:"message"`
		Parent   *string `json:"parent_tool_use_id"`
		Session  string  `json:"session_id"`
		Composed bool    `json:"client_composed,omitempty"`
		Query    *bool   `json:"shouldQuery,omitempty"`
	}{Type: "user", UUID: m.ID, Composed: m.Composed, Message: message{Role: "user", Content: m.Text}}
	if !query {
		l.Query = &query
	}
	if len(m.Files) > 0 {
		blocks := []block{}
		if m.Text != "" {
			blocks = append(blocks, block{Type: "text", Text: m.Text})
		}
		for _, f := range m.Files {
			blocks = append(blocks, f.block())
		}
		l.Message.Content = blocks
	}
	return l
}

// block is a content block of the model's API.
type block struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Source any    `json:"source,omitempty"`
}

// shown are the media types that the model itself can look at.
var shown = map[string]string{
	"image/png": "image", "image/jpeg": "image", "image/gif": "image", "image/webp": "image", "application/pdf": "document",
}

func (f File) block() block {
	if kind := shown[f.Type]; kind != "" {
		return block{Type: kind, Source: map[string]string{
			"type": "base64", "media_type": f.Type, "data": base64.StdEncoding.EncodeToString(f.Data),
		}}
	}
	if !utf8.Valid(f.Data) {
		return block{Type: "text", Text: fmt.Sprintf("[file %s of type %s, %d bytes, cannot be shown]", f.Name, orDash(f.Type), len(f.Data))}
	}
	name, _ := json.Marshal(f.Name)
	return block{Type: "text", Text: fmt.Sprintf("<file name=%s>\n%s\n</file>", name, f.Data)}
}

// flatten makes one message of an earlier conversation, for a CLI that knows nothing of it.
func flatten(history []Turn) Message {
	m := Message{Composed: true}
	var b strings.Builder
	b.WriteString("This is what was said before, in a conversation that cannot be resumed here. It is not to be answered again.\n\n")
	for _, t := range history {
		if t.Role == ToolOutput {
			fmt.Fprintf(&b, "TOOL RESULT [%s]: ", t.Tool)
		} else {
			b.WriteString(strings.ToUpper(string(t.Role)) + ": ")
		}
		b.WriteString(t.Text)
		for _, f := range t.Files {
			fmt.Fprintf(&b, " [sent along: %s]", f.Name)
		}
		b.WriteString("\n\n")
		m.Files = append(m.Files, t.Files...)
	}
	m.Text = b.String()
	return m
}
