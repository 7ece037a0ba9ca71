package slack

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// Limits in characters. Slack takes 12,000 in the markdown blocks of a message and about 13,200 in all its blocks (bolt-js#2509), and
// says 4,000 of text where it takes no blocks.
const (
	maxMarkdown = 11_000
	maxPlain    = 3_900
	maxSentence = 500
	maxPreview  = 2_000 // of the text beside blocks, which notifications show and threads are read by
)

// part is one message of a final message.
type part struct {
	mark marker
	lead string // who asked, and how it ended if not with an answer: mrkdwn, of the first part
	body string // Markdown
	foot string // mrkdwn, of the last part
}

// parts are a task's final message.
func parts(t tasks.Task, o origin, e tasks.Ending, link string) []part {
	lead := "<@" + o.User + ">"
	if s := line(e.Sentence(), maxSentence); s != "" {
		lead += " " + escape(quiet(s))
	}
	bodies := split(quiet(strings.TrimSpace(body(e))), maxMarkdown)
	if len(bodies) == 0 {
		bodies = []string{""}
	}
	list := make([]part, len(bodies))
	for i, b := range bodies {
		list[i] = part{mark: finalMarker(t, e, fmt.Sprintf("final/%d", i+1)), body: b}
	}
	list[0].lead = lead
	list[len(list)-1].foot = dots(escape(quiet(line(e.Footer(), 200))), "run "+t.ID, link)
	return list
}

// body is the answer, or what there is of one.
func body(e tasks.Ending) string {
	if e.Kind == tasks.Answered {
		return e.Result.Text
	}
	partial := e.Partial()
	if partial == "" {
		return ""
	}
	return "What the agent had said until then:\n\n> " + strings.ReplaceAll(partial, "\n", "\n> ")
}

// message is the part as Slack shows it best. The mention stands in a block of its own, because markdown blocks are not known to
// notify.
func (p part) message() []slack.MsgOption {
	var blocks []slack.Block
	if p.lead != "" {
		blocks = append(blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, p.lead, false, false), nil, nil))
	}
	if p.body != "" {
		blocks = append(blocks, slack.NewMarkdownBlock("", p.body))
	}
	if p.foot != "" {
		blocks = append(blocks, slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, p.foot, false, false)))
	}
	text := lines(p.lead, mrkdwn(cut(p.body, maxPreview)))
	if text == "" {
		text = p.foot
	}
	return []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks...)}
}

// plain is the part without blocks, in as many messages as it takes.
func (p part) plain() []string {
	room := max(minSplit, maxPlain-utf8.RuneCountInString(p.lead+p.foot)-len("\n\n"))
	var texts []string
	// What is escaped grows, up to fivefold, so it is cut shorter until all of it fits.
	for limit := room; ; limit = limit * 3 / 4 {
		texts = texts[:0]
		longest := 0
		for _, s := range split(p.body, limit) {
			text := mrkdwn(s)
			texts, longest = append(texts, text), max(longest, utf8.RuneCountInString(text))
		}
		if longest <= room || limit < minSplit {
			break
		}
	}
	if len(texts) == 0 {
		texts = []string{""}
	}
	texts[0] = lines(p.lead, texts[0])
	last := len(texts) - 1
	texts[last] = lines(texts[last], p.foot)
	return texts
}

// lines puts what there is below each other.
func lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
