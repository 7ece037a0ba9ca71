// Package render turns Markdown, endings, questions and states of tasks into Slack messages: blocks, and text where
// Slack takes no blocks.
//
// Everything here is a function of its arguments; nothing calls Slack. It promises that text of agents and strangers
// pings nobody and shows as it is written, and that every message stays within Slack's limits, in as many parts as it
// takes. Each message carries a [Marker], by which a later attempt finds it.
package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	// maxParts is how many messages a text may take. Of a longer one only the beginning is posted, and all of it as a
	// file.
	maxParts = 4
	// maxBeginning is the length of that beginning, in characters.
	maxBeginning = 3_000
)

// Final is the final message of a task for the user who asked.
func (c Console) Final(t tasks.Task, user string, e tasks.Ending) []Part {
	lead := strings.TrimSpace(mention(user) + " " + Literal(e.Sentence(), MaxSentence))
	return Parts(FinalMarker(t, e), lead, e.Body(), endingFoot(t, e), c.finalButtons(t, e)...)
}

// mention mentions a user, but no webhook or workflow, which Slack cannot.
func mention(user string) string {
	if strings.HasPrefix(user, "B") {
		return ""
	}
	return "<@" + user + ">"
}

// endingFoot is the note of an ending, a line for each repository, and its facts.
func endingFoot(t tasks.Task, e tasks.Ending) string {
	note := ""
	for _, one := range e.Notes() {
		note = Lines(note, Literal(one, MaxSentence))
	}
	return Lines(note, Dots(Literal(e.Footer(), 200), "run "+display.TaskID(t.ID)))
}

// Notice is a message about a task that was not requested in Slack. The title of its pull request is a stranger's.
func (c Console) Notice(n tasks.Notice) []Part {
	lead, pulls := Literal(n.Headline, MaxSentence/2), pullButtons(&n.Ending)
	if pull := n.PullRequest; pull.Number > 0 {
		named := Escape(fmt.Sprintf("%s#%d", pull.Repo, pull.Number))
		pulls = nil
		if webLink.MatchString(pull.URL) {
			named, pulls = link(pull.URL, named), []Button{{Text: "Pull request", Action: ActionPull, URL: pull.URL}}
		}
		lead = Lines(named+" "+Literal(pull.Title, 150), lead)
	}
	buttons := append(pulls, c.LogButton(n.Task.ID)...)
	mark := FinalMarker(n.Task, n.Ending)
	mark.Notice = NoticeKey(n)
	return Parts(mark, lead, n.Body, endingFoot(n.Task, n.Ending), buttons...)
}

// NoticeKey names the thread of a notice in markers and memos: its pull request, or else the thread of its task.
func NoticeKey(n tasks.Notice) string {
	if n.PullRequest.Number == 0 {
		return n.Task.Thread
	}
	return strings.ToLower(n.PullRequest.Repo) + "#" + strconv.Itoa(n.PullRequest.Number)
}

// Beginning replaces parts that are too many to read by one: the beginning of whole, and a sentence that names where
// to find all of it. It returns false if the parts are few enough.
func Beginning(parts []Part, whole, where string) (Part, bool) {
	if len(parts) <= maxParts {
		return Part{}, false
	}
	first, last := parts[0], parts[len(parts)-1]
	first.Body = split(first.Body, maxBeginning)[0] +
		fmt.Sprintf("\n\n_This is only the beginning. The whole text (%d characters) is in %s._",
			utf8.RuneCountInString(whole), where)
	first.Foot, first.Buttons = last.Foot, last.Buttons
	return first, true
}

// Question is the message that asks user a question. foot says how to answer, or what the answer was.
func Question(t tasks.Task, user string, q tasks.Question, foot string, buttons ...Button) []Part {
	mark := Marker{Task: t.ID, Part: QuestionPart, Question: q.Key}
	var b strings.Builder
	// a block of code in the question ends before the options
	b.WriteString(markdown.Closed(strings.Trim(q.Text, "\r\n")))
	for i, option := range q.Options {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "\n%d. %s", i+1, untrusted.Short(option, MaxSentence))
	}
	lead := strings.TrimSpace(mention(user) + " I have a question before I continue.")
	return Parts(mark, lead, b.String(), foot, buttons...)
}

// maxAsked is how much of a request is shown in the bot's post of it, in characters.
const maxAsked = 3_000

// Asked shows a request that the bot posts for a person, in mrkdwn.
func Asked(user, text string) string {
	return "<@" + user + "> asks: " + Escape(NoPings(untrusted.Cut(text, maxAsked)))
}

// HowToAnswer says how to answer a question to the bot that is called me, with the deadline in the reader's time zone.
func (c Console) HowToAnswer(t tasks.Task, q tasks.Question, me string) string {
	what, console := "your answer", ""
	if len(q.Options) > 0 {
		what = "a number or your own words"
	}
	if c != nil {
		console = ", or answer " + link(c(t.ID), "in the console")
	}
	without := "After that I continue without an answer."
	if q.Consent != "" {
		without = "After that I continue without it. “" + tasks.Always +
			"” covers everything that I would ask about: " + Literal(q.Consent, MaxSentence) + "."
	}
	return fmt.Sprintf("To answer, mention <@%s> in this thread with %s%s, %s. %s", me, what, console,
		moment("until ", q.Until), without)
}

// Outcome shows the answer to a question. person renders who gave it.
func Outcome(q tasks.Question, person func(string) string) string {
	return intake.Outcome(q, person, func(s string) string { return Escape(NoPings(s)) })
}

// PullList is a list of the open pull requests of a repository, in mrkdwn.
func PullList(repo string, pulls []forge.PullRequest) string {
	if len(pulls) == 0 {
		return Escape(repo) + " has no open pull requests."
	}
	entries := []string{"The newest open pull requests of " + Escape(repo) + ":"}
	for _, p := range pulls {
		draft := ""
		if p.Draft {
			draft = "draft"
		}
		title := fmt.Sprintf("%s %s", link(p.URL, fmt.Sprintf("#%d", p.Number)), Literal(p.Title, 150))
		entries = append(entries, "• "+Dots(title, Escape(p.Author), draft))
	}
	return strings.Join(entries, "\n")
}

// Limits in characters. Slack takes 12,000 in the markdown blocks of a message, about 13,200 in all its blocks
// (bolt-js#2509), and 4,000 of text in a message without blocks.
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

// Parts divides a text over as many messages as it takes. The body is the agent's: it pings nobody, and its images
// become links.
func Parts(mark Marker, lead, body, foot string, buttons ...Button) []Part {
	bodies := oneTableEach(split(NoPings(fenceTables(markdown.Links(strings.TrimSpace(body)))), maxMarkdown))
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

// Message is the part with blocks. The mention is in a separate block, because markdown blocks are not known to notify.
// The text beside the blocks has up to preview characters of the body.
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
	text := cmp.Or(Lines(p.Lead, mrkdwn(untrusted.Cut(p.Body, preview))), p.Foot)
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

// Dots joins the texts that are not empty.
func Dots(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " · ")
}
