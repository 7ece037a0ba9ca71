package modelfake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A message that arrives while tools run comes beside the tool results, or after them with the role "system", in these
// words, several messages in one text (both seen with 2.1.332).
// (For models before Claude 4 the CLI hides it inside the tool result; the fake does not look there.)
const (
	midTurnStart = "The user sent a new message while you were working:\n"
	midTurnEnd   = "\n\nThis is how Claude Code surfaces messages"
)

// A reminder fills its whole text. Background tasks report their end in one, too.
const reminderStart, reminderEnd = "<system-reminder>", "</system-reminder>"

// injected are the beginnings of user texts that the CLI (2.1.332) itself puts between the prompts, as a note about
// what happened or to make the model continue. All were observed on the wire.
var injected = []string{
	"[Request interrupted by user",
	"Your response above was stopped by a safety classifier",
	"Output token limit hit. Resume directly",
	"[structured-output-enforce]",
	"[Your previous response had no visible output.",
	"[Image: source: ",
}

// conversation decides the answer. It depends only on the request's body.
type conversation struct {
	prompt  string
	prompts int
	turn    int
}

// call is the body of a request to /v1/messages, with the fields that matter here.
type call struct {
	Model    string  `json:"model"`
	Stream   bool    `json:"stream"`
	System   content `json:"system"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

// content is a string or a list of blocks on the wire; here it holds their texts.
type content []string

// UnmarshalJSON keeps text blocks and drops all others: tool results, images, thinking.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*c = make(content, 1)
		return json.Unmarshal(b, &(*c)[0])
	}
	var blocks []struct{ Type, Text string }
	if err := json.Unmarshal(b, &blocks); err != nil {
		return fmt.Errorf("read content: %w", err)
	}
	for _, block := range blocks {
		if block.Type == "text" {
			*c = append(*c, block.Text)
		}
	}
	return nil
}

// conversation finds the latest message with a prompt, and counts the answers after it.
func (c call) conversation() conversation {
	var conv conversation
	for _, m := range c.Messages {
		var text string
		var n int
		switch m.Role {
		case "assistant":
			conv.turn++
		case "user":
			if text, n = midTurnText(m.Content); n == 0 {
				text, n = userText(m.Content)
			}
		case "system":
			text, n = midTurnText(m.Content)
		}
		if n > 0 {
			conv = conversation{prompt: text, prompts: conv.prompts + n}
		}
	}
	return conv
}

// userText returns the last prompt in a user message, and how many there are.
//
// One prompt may have several texts. Prompts that got no answer, because of an API error or an interruption, share one
// message with the next; the CLI ends all texts of such a message but the last with a newline.
func userText(c content) (last string, n int) {
	ended := true
	for _, text := range c {
		if !said(text) {
			continue
		}
		if ended {
			last, n = "", n+1
		} else {
			last += "\n"
		}
		last, ended = last+strings.TrimSuffix(text, "\n"), strings.HasSuffix(text, "\n")
	}
	return last, n
}

// said reports whether a person, or the host of the CLI, may have written the text.
func said(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasPrefix(text, reminderStart) && strings.HasSuffix(text, reminderEnd) {
		return false
	}
	return !slices.ContainsFunc(injected, func(start string) bool { return strings.HasPrefix(text, start) })
}

// midTurnText returns the messages that arrived while tools ran, in one text, as the CLI itself joins queued messages.
func midTurnText(c content) (text string, n int) {
	var texts []string
	for _, part := range strings.Split(strings.Join(c, "\n\n"), midTurnStart)[1:] {
		one, _, _ := strings.Cut(part, midTurnEnd)
		texts = append(texts, one)
	}
	return strings.Join(texts, "\n"), len(texts)
}
