package render

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Limits in characters. Slack takes 12,000 in the markdown blocks of a message, about 13,200 in all its blocks (bolt-js#2509), and 4,000
// of text in a message without blocks.
const (
	maxMarkdown = 11_000
	maxPlain    = 3_900
	MaxSentence = 500
	MaxPreview  = 2_000 // of the text beside blocks, which notifications show and threads are read by
	MaxEdit     = 600   // of that text in an edit, which takes 4,000: escaped text grows up to fivefold
)

// Part is one message of a text that may be too long for one.
type Part struct {
	Mark Marker
	Lead string // of the first part: mrkdwn that names the reader, and a sentence
	Body string // Markdown
	Foot string // of the last part: mrkdwn

	Buttons []Button // below the last part
}

// Parts divides a text over as many messages as it takes. The body is the agent's: it pings nobody, and its images become links.
func Parts(mark Marker, lead, body, foot string, buttons ...Button) []Part {
	bodies := split(NoPings(fenceTables(markdown.Links(strings.TrimSpace(body)))), maxMarkdown)
	if len(bodies) == 0 {
		bodies = []string{""}
	}
	list := make([]Part, len(bodies))
	for i, b := range bodies {
		list[i] = Part{Mark: mark, Body: b}
		list[i].Mark.Part += fmt.Sprintf("/%d", i+1)
	}
	list[0].Lead = lead
	last := &list[len(list)-1]
	last.Foot, last.Buttons = foot, buttons
	return list
}

// Message is the part with blocks. The mention is in a separate block, because markdown blocks are not known to notify. The text beside
// the blocks has up to preview characters of the body.
func (p Part) Message(preview int) []slack.MsgOption {
	var blocks []slack.Block
	if p.Lead != "" {
		blocks = append(blocks, slack.NewSectionBlock(mrkdwnText(p.Lead), nil, nil))
	}
	if p.Body != "" {
		blocks = append(blocks, slack.NewMarkdownBlock("", p.Body))
	}
	if p.Foot != "" {
		blocks = append(blocks, slack.NewContextBlock("", mrkdwnText(p.Foot)))
	}
	if len(p.Buttons) > 0 {
		blocks = append(blocks, buttonRow(p.Buttons))
	}
	text := Lines(p.Lead, mrkdwn(Cut(p.Body, preview)))
	if text == "" {
		text = p.Foot
	}
	return []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks...)}
}

// Plain is the part without blocks, in as many messages as it takes. Only buttons that are links are kept.
func (p Part) Plain() []string {
	foot := Dots(append([]string{p.Foot}, buttonLinks(p.Buttons)...)...)
	room := max(markdown.MinSplit, maxPlain-utf8.RuneCountInString(p.Lead+foot)-len("\n\n"))
	var texts []string
	// Escaped text grows up to fivefold, so it is cut shorter until all of it fits.
	for limit := room; ; limit = limit * 3 / 4 {
		texts = texts[:0]
		longest := 0
		for _, s := range split(p.Body, limit) {
			text := mrkdwn(s)
			texts, longest = append(texts, text), max(longest, utf8.RuneCountInString(text))
		}
		if longest <= room || limit < markdown.MinSplit {
			break
		}
	}
	if len(texts) == 0 {
		texts = []string{""}
	}
	texts[0] = Lines(p.Lead, texts[0])
	last := len(texts) - 1
	texts[last] = Lines(texts[last], foot)
	return texts
}
