package agent

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif" // the formats that PictureType knows
	_ "image/jpeg"
	_ "image/png"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/argument"
)

// Message is one message of a person.
type Message struct {
	ID   string // UUID, which the CLI repeats in its lifecycle lines; empty: a new one
	Text string
	// Composed marks text from outside sources, in which a /command or an @agent at the beginning is plain text. Files
	// (@path) are never expanded, in any message: the agent reads them with its tools, under the run's policy.
	Composed bool
	Agent    string // name of the agent that should work on it; empty: the model chooses
	Files    []File // attachments; images and PDFs are shown to the model, other files are quoted as text
	Model    string // the conversation continues with this model; empty: with the current one
	Mode     Mode   // the conversation continues in this mode; empty: in the current one
}

// File is an attachment of a message.
type File struct {
	Name string // for people
	Type string // media type, such as image/png
	Data []byte
}

// Mode is how free the agent is within its profile.
type Mode string

// The modes.
const (
	Act  Mode = "default" // it does the work
	Plan Mode = "plan"    // it changes nothing, and answers with a plan
)

// Turn is a piece of an earlier conversation.
type Turn struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
}

// Role is the author of a Turn.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// builtins are commands of the CLI about the session, or about a terminal, which is missing here. The CLI would execute
// them without the model, and the thread would not show what they changed in the conversation.
var builtins = map[string]bool{
	"add-dir": true, "agents": true, "auto-mode-setup": true, "autocompact": true, "bug": true, "clear": true,
	"color": true, "compact": true, "config": true, "context": true, "cost": true, "doctor": true, "effort": true,
	"exit": true, "fast": true, "focus": true, "goal": true, "heapdump": true, "help": true, "hooks": true,
	"insights": true, "list-agents": true, "login": true, "logout": true, "loop": true, "mcp": true, "memory": true,
	"model": true, "output-style": true, "permissions": true, "quit": true, "recap": true, "reload-plugins": true,
	"reload-skills": true, "rename": true, "resume": true, "status": true, "statusline": true, "team-onboarding": true,
	"update-config": true, "usage": true, "vim": true, "workflow-launch-exec": true,
}

// forTerminal reports whether a command is one of builtins, or internal to the CLI (__remote-workflow).
func forTerminal(command string) bool { return builtins[command] || strings.HasPrefix(command, "__") }

// CheckPrompt returns an error, in one sentence for its author, if a text cannot be a prompt. The /commands and agents
// of the project are fine; the CLI's commands about its session are not, because there is no terminal.
func CheckPrompt(text string) error {
	if word := commandOf(text); forTerminal(word) {
		return fmt.Errorf("/%s is a terminal command of Claude Code and has no effect here: "+
			"describe what you want in words", word)
	}
	return nil
}

// check returns an error if the CLI cannot accept the message.
func (m Message) check() error {
	if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
		return fmt.Errorf("the message is empty")
	}
	if m.Model != "" && !argument.Valid(m.Model) {
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

// line returns the message in the CLI's format. A user message without a role would crash the CLI (2.1.329). Without
// query it is added to the conversation and not answered. Only what known lists is expanded: see callable.
func (m Message) line(query bool, known callable) any {
	agent, command := known.called(m)
	if command != "" {
		m.Text = strings.Replace(m.Text, commandOf(m.Text), command, 1)
	}
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
	}{Type: "user", UUID: m.ID, Composed: agent == "" && command == "", Message: message{Role: "user", Content: m.Text}}
	if !query {
		l.Query = &query
	}
	if len(m.Files) > 0 || agent != "" {
		l.Message.Content = m.blocks(agent, command != "")
	}
	return l
}

// blocks returns the parts of a message. The CLI expands only the last one (observed with 2.1.329).
func (m Message) blocks(agent string, command bool) (blocks []block) {
	text := block{Type: "text", Text: m.Text}
	if m.Text != "" && !command {
		blocks = append(blocks, text)
	}
	for _, f := range m.Files {
		blocks = append(blocks, f.block())
	}
	switch {
	case command:
		blocks = append(blocks, text)
	case agent != "":
		blocks = append(blocks, block{Type: "text", Text: "@agent-" + agent})
	}
	return blocks
}

// block is a content block of the model's API.
type block struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Source any    `json:"source,omitempty"`
}

// shown has the media types that the model can look at, with the types of their blocks.
var shown = map[string]string{
	"image/png": "image", "image/jpeg": "image", "image/gif": "image", "image/webp": "image",
	"application/pdf": "document",
}

func (f File) block() block {
	if kind := shown[f.Type]; kind != "" {
		return block{Type: kind, Source: map[string]string{
			"type": "base64", "media_type": f.Type, "data": base64.StdEncoding.EncodeToString(f.Data),
		}}
	}
	if !utf8.Valid(f.Data) {
		return block{Type: "text", Text: fmt.Sprintf("[file %s of type %s, %d bytes, cannot be shown]",
			QuoteName(f.Name), cmp.Or(f.Type, "-"), len(f.Data))}
	}
	return block{Type: "text", Text: fmt.Sprintf("<file name=%s>\n%s\n</file>", QuoteName(f.Name), f.Data)}
}

// flatten makes one message from an earlier conversation, for a CLI that does not have it.
func flatten(history []Turn) Message {
	var b strings.Builder
	b.WriteString("This is an earlier conversation that cannot be resumed here. Do not answer it again.\n\n")
	for _, t := range history {
		b.WriteString(strings.ToUpper(string(t.Role)) + ": " + t.Text + "\n\n")
	}
	return Message{Composed: true, Text: b.String()}
}

// Bounds of the pictures in one message. The CLI scales pictures down to 2000 pixels a side and about half a megabyte
// (observed with 2.1.329, up to 16 MB), so they bound the work of the CLI and not that of the model.
const (
	MaxPictures     = 5
	maxPictureBytes = 20 << 20
	maxPixels       = 50_000_000
	pictureTail     = 64 << 10
)

// pictureEnds has the bytes that end an image of a format. Cameras and phones append up to pictureTail bytes.
var pictureEnds = map[string][]byte{"png": []byte("IEND\xaeB`\x82"), "jpeg": {0xff, 0xd9}, "gif": {0x3b}}

// PictureType returns the media type of an image that can be shown to the model: a PNG, JPEG or GIF that is complete
// and within the CLI's limits; empty for anything else. It looks at the bytes and not at a declared type, because the
// model's API refuses a broken image, and then every later message of that conversation.
func PictureType(data []byte) string {
	if len(data) > maxPictureBytes {
		return ""
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || c.Width == 0 || c.Height == 0 || c.Width > maxPixels/c.Height {
		return ""
	}
	if tail := data[max(0, len(data)-pictureTail):]; !bytes.Contains(tail, pictureEnds[format]) {
		return ""
	}
	return "image/" + format
}
