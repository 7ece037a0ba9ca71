package slack

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Limits in characters. Slack takes 12,000 in the markdown blocks of a message and about 13,200 in all its blocks (bolt-js#2509), and
// says 4,000 of text where it takes no blocks.
const (
	maxMarkdown = 11_000
	maxPlain    = 3_900
	maxSentence = 500
	maxPreview  = 2_000 // of the text beside blocks, which notifications show and threads are read by
	maxEdit     = 600   // of that in an edit, which takes 4,000 of it: what is escaped grows up to fivefold
)

// part is one message of something that may be too long for one.
type part struct {
	mark marker
	lead string // whom it is for, and a sentence: mrkdwn, of the first part
	body string // Markdown
	foot string // mrkdwn, of the last part

	buttons []button // below the last part
}

// inParts divides what is said over as many messages as it takes. The body is the agent's: it pings nobody, and its images are links.
func inParts(mark marker, lead, body, foot string, buttons ...button) []part {
	bodies := split(quiet(tables(markdown.Links(strings.TrimSpace(body)))), maxMarkdown)
	if len(bodies) == 0 {
		bodies = []string{""}
	}
	list := make([]part, len(bodies))
	for i, b := range bodies {
		list[i] = part{mark: mark, body: b}
		list[i].mark.part += fmt.Sprintf("/%d", i+1)
	}
	list[0].lead = lead
	last := &list[len(list)-1]
	last.foot, last.buttons = foot, buttons
	return list
}

// put posts one part, unless it was found, and notes that it did. What Slack does not take for a message with blocks is said in plain
// text; once that has begun it is not tried again. What it does not take in plain text either becomes a file.
func (s *Source) put(ctx context.Context, o origin, f found, p part) error {
	if f.parts[p.mark] {
		return nil
	}
	if !f.begun(p.mark) {
		_, err := s.post(ctx, o, p.mark, p.message(maxPreview)...)
		if !unfit(err) {
			f.parts[p.mark] = err == nil
			return err
		}
		s.log.Warn("post in plain text", "run", p.mark.task, "err", err)
	}
	for i, text := range p.plain() {
		mark := p.mark
		mark.part += fmt.Sprintf(".%d", i+1)
		if f.parts[mark] {
			continue
		}
		_, err := s.post(ctx, o, mark, slack.MsgOptionText(text, false))
		if unfit(err) {
			s.log.Warn("post as a file", "run", p.mark.task, "err", err)
			return s.asFile(ctx, o, f, p)
		}
		if err != nil {
			return err
		}
		f.parts[mark] = true
	}
	return nil
}

// message is the part as Slack shows it best. The mention stands in a block of its own, because markdown blocks are not known to
// notify. The text beside the blocks has that many characters of the body.
func (p part) message(preview int) []slack.MsgOption {
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
	if len(p.buttons) > 0 {
		blocks = append(blocks, row(p.buttons))
	}
	text := lines(p.lead, mrkdwn(cut(p.body, preview)))
	if text == "" {
		text = p.foot
	}
	return []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks...)}
}

// plain is the part without blocks, in as many messages as it takes. Of its buttons only those that are links are left.
func (p part) plain() []string {
	foot := dots(append([]string{p.foot}, linked(p.buttons)...)...)
	room := max(markdown.MinSplit, maxPlain-utf8.RuneCountInString(p.lead+foot)-len("\n\n"))
	var texts []string
	// What is escaped grows, up to fivefold, so it is cut shorter until all of it fits.
	for limit := room; ; limit = limit * 3 / 4 {
		texts = texts[:0]
		longest := 0
		for _, s := range split(p.body, limit) {
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
	texts[0] = lines(p.lead, texts[0])
	last := len(texts) - 1
	texts[last] = lines(texts[last], foot)
	return texts
}

// lines puts what there is below each other.
func lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
