package render

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/app"
)

// The two notations that make Slack notify people: its own, also in the forms in which Markdown can write it, and names
// of groups as people type them.
var (
	pings     = regexp.MustCompile(`(?i)(<|&(?:lt|#0*60|#x0*3c);)(\\*(?:!(?:channel|here|everyone|group|subteam)|@[a-z0-9]))`)
	everybody = regexp.MustCompile(`(?i)(^|[^a-z0-9_.])@(here|channel|everyone)\b`)
)

// NoPings breaks everything in text that would notify people with a zero-width space. Slack does not document whether a
// markdown block expands its notation, so code is treated likewise.
func NoPings(text string) string {
	text = pings.ReplaceAllString(text, "$1\u200b$2")
	return everybody.ReplaceAllString(text, "$1@\u200b$2")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape is the mrkdwn that shows text literally.
func Escape(text string) string { return escaper.Replace(text) }

// Literal is the mrkdwn that shows at most n characters of text in one line, literally and without notifying anybody.
func Literal(text string, n int) string { return Escape(NoPings(untrusted.Short(text, n))) }

var (
	heading = regexp.MustCompile(`^[ ]{0,3}#{1,6}[ \t]+(.*?)[ \t#]*$`)
	// inline matches, in this order, code, a link, an address, bold italics, bold, struck text, and what is escaped.
	inline = regexp.MustCompile(strings.ReplaceAll("CODE"+
		`|!?\[((?:[^\[\]\x60]|CODE)+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)|<((?:https?://|mailto:)[^\s|<>]+)>`+
		`|\*{3}((?:[^*\x60]|CODE)+)\*{3}|\*\*((?:[^*\x60]|CODE)+)\*\*|~~((?:[^~\x60]|CODE)+)~~|[&<>]`, "CODE", "`[^`]+`"))
	webLink = regexp.MustCompile(`^(?:https?://|mailto:)[^|<>]+$`)
	label   = strings.NewReplacer("|", "/", "<", "", ">", "") // keeps a link from ending, and from links within it
)

// mrkdwn turns Markdown into Slack's older notation, for messages whose markdown block is refused. It converts
// headings, bold and struck text, and links; the rest looks much the same in both.
func mrkdwn(text string) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		switch l.Kind {
		case markdown.Code:
			b.WriteString(Escape(l.Text))
		case markdown.Opening, markdown.Closing:
			// Slack supports neither other fences nor a language after one.
			if before := l.Text[:strings.IndexAny(l.Text, "`~")]; strings.TrimSpace(before) != "" {
				b.WriteString(Escape(before)) // the sign of a quote or a list
			}
			b.WriteString("```" + l.Text[len(strings.TrimRight(l.Text, "\r\n")):])
		default:
			b.WriteString(convertLine(l.Text))
		}
	}
	return b.String()
}

// convertLine converts a line outside code.
func convertLine(l string) string {
	text := strings.TrimRight(l, "\r\n")
	end := l[len(text):]
	if m := heading.FindStringSubmatch(text); m != nil && m[1] != "" {
		return "*" + convertInline(NoPings(strings.ReplaceAll(m[1], "**", ""))) + "*" + end
	}
	return convertInline(l)
}

// convertInline converts text within a line.
func convertInline(text string) string {
	return inline.ReplaceAllStringFunc(text, func(s string) string {
		m := inline.FindStringSubmatch(s)
		words, url, address, both, strong, struck := m[1], m[2], m[3], m[4], m[5], m[6]
		switch {
		case webLink.MatchString(url):
			return link(url, label.Replace(convertInline(words)))
		case url != "":
			return convertInline(words) + " (" + Escape(url) + ")"
		case address != "":
			return "<" + Escape(address) + ">"
		case both != "":
			return "*_" + convertInline(both) + "_*"
		case strong != "":
			return "*" + convertInline(strong) + "*"
		case struck != "":
			return "~" + convertInline(struck) + "~"
		}
		return Escape(s)
	})
}

// Lines joins the texts that are not empty, each on a separate line.
func Lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// split cuts Markdown into parts of at most limit characters.
func split(text string, limit int) []string {
	return markdown.Split(text, limit, utf8.RuneCountInString)
}

// The largest table that Slack shows: rows, columns, and as many characters as fill half a part, so that a table
// need not be cut.
const (
	maxRows      = 100
	maxColumns   = 20
	maxTableSize = maxMarkdown / 2
)

var delimiter = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)

// fenceTables puts each table that is larger than Slack shows into a block of code, which can be read and cut.
func fenceTables(text string) string {
	var b strings.Builder
	for _, lines := range tablesApart(text) {
		b.WriteString(fenceTable(lines))
	}
	return b.String()
}

// tablesApart returns the lines of Markdown, those of each table together and each other one alone.
func tablesApart(text string) (list [][]markdown.Line) {
	for lines := markdown.Lines(text); len(lines) > 0; {
		n := max(1, tableLength(lines))
		list = append(list, lines[:n])
		lines = lines[n:]
	}
	return list
}

// tableLength returns how many of the first lines are a table; 0 if they are none.
func tableLength(list []markdown.Line) int {
	row := func(i int) bool {
		return i < len(list) && list[i].Kind == markdown.Text && strings.Contains(list[i].Text, "|")
	}
	if !row(0) || !row(1) || !delimiter.MatchString(strings.TrimRight(list[1].Text, "\r\n")) {
		return 0
	}
	n := 2
	for row(n) {
		n++
	}
	return n
}

// oneTableEach divides bodies so that each has one table at most, which is what Slack takes in a message. If that makes
// too many messages to read, the further tables of a body become blocks of code.
func oneTableEach(bodies []string) []string {
	var divided, fenced []string
	for _, body := range bodies {
		pieces := cutAtTables(body)
		divided = append(divided, pieces...)
		fenced = append(fenced, fenceFirstTables(pieces))
	}
	if len(divided) > max(maxParts, len(bodies)) {
		return fenced
	}
	return divided
}

// cutAtTables cuts Markdown before each table but the first.
func cutAtTables(text string) []string {
	var pieces []string
	var b strings.Builder
	n := 0 // tables
	for _, lines := range tablesApart(text) {
		if len(lines) > 1 {
			if n++; n > 1 {
				pieces = append(pieces, strings.TrimSpace(b.String()))
				b.Reset()
			}
		}
		b.WriteString(joinLines(lines))
	}
	return append(pieces, b.String())
}

// fenceFirstTables puts the table with which each piece but the first begins into a block of code, and joins them.
func fenceFirstTables(pieces []string) string {
	for i, piece := range pieces[1:] {
		list := markdown.Lines(piece)
		n := tableLength(list)
		pieces[i+1] = markdown.Fenced("", strings.TrimSuffix(joinLines(list[:n]), "\n")) + "\n" + joinLines(list[n:])
	}
	return strings.Join(pieces, "\n\n")
}

func joinLines(list []markdown.Line) string {
	var b strings.Builder
	for _, l := range list {
		b.WriteString(l.Text)
	}
	return b.String()
}

// fenceTable returns a table, in a block of code if it is too large, or another line.
func fenceTable(rows []markdown.Line) string {
	text := joinLines(rows)
	columns := strings.Count(strings.Trim(strings.TrimSpace(rows[0].Text), "|"), "|") + 1
	if len(rows) == 1 ||
		len(rows)-1 <= maxRows && columns <= maxColumns && utf8.RuneCountInString(text) <= maxTableSize {
		return text
	}
	return markdown.Fenced("", strings.TrimSuffix(text, "\n")) + "\n"
}

// The actions of buttons and menus. They stay in messages as long as those exist, so do not rename them.
const (
	ActionStop   = "stop"
	ActionRetry  = "retry"
	ActionReady  = "ready"
	ActionLog    = "log"          // a link: Slack opens it, and sends the press as well
	ActionPull   = "pull"         // likewise; of several, followed by a slash and its index
	ActionPick   = "pick"         // a menu, in a block named after the request
	ActionGood   = "good"         // a vote
	ActionBad    = "bad"          // likewise; opens the dialog of that name
	ActionAnswer = "answer"       // followed by a slash and the index of the option
	ActionDeny   = "deny"         // opens the dialog of that name
	ActionAsk    = app.ShortcutID // a shortcut, which opens the dialog of that name
	ReasonField  = "reason"       // of all dialogs
)

// maxButton is the length of a button's text in characters.
const maxButton = 75

// Button is a button below a message: what it does and with what, or where it leads.
type Button struct {
	Text   string
	Action string
	Value  string // the task it is about, and more
	URL    string // a link, if not empty
	Style  slack.Style
}

// buttonRow is a block of buttons.
func buttonRow(buttons []Button) slack.Block {
	var elements []slack.BlockElement
	for _, b := range buttons {
		e := slack.NewButtonBlockElement(b.Action, b.Value,
			slack.NewTextBlockObject(slack.PlainTextType, b.Text, true, false))
		e.URL, e.Style = b.URL, b.Style
		elements = append(elements, e)
	}
	return slack.NewActionBlock("", elements...)
}

// buttonLinks are the buttons that lead somewhere as links in mrkdwn, for messages without blocks.
func buttonLinks(buttons []Button) (list []string) {
	for _, b := range buttons {
		if b.URL != "" {
			list = append(list, link(b.URL, b.Text))
		}
	}
	return list
}

// link is a link in mrkdwn; its label is mrkdwn, too.
func link(url, label string) string { return "<" + Escape(url) + "|" + label + ">" }

// Console returns the address of a task at the console. If it is nil, messages have no links to tasks.
type Console func(id string) string

// LogButton leads to a task's page.
func (c Console) LogButton(id string) []Button {
	if c == nil {
		return nil
	}
	return []Button{{Text: "Log", Action: ActionLog, URL: c(id)}}
}

// RunButtons go with a task that has not ended.
func (c Console) RunButtons(id string) []Button {
	return append([]Button{{Text: "Stop", Action: ActionStop, Value: id, Style: slack.StyleDanger}}, c.LogButton(id)...)
}

// pullButtons lead to the pull requests of an ending. Several are told apart by their names.
func pullButtons(e *tasks.Ending) (list []Button) {
	pulls := e.PullRequests()
	for i, p := range pulls {
		b := Button{Text: "Pull request", Action: ActionPull, URL: p.PullRequest.URL}
		if len(pulls) > 1 {
			b.Text, b.Action = untrusted.Short(p.Name(), maxButton), ActionPull+"/"+strconv.Itoa(i)
		}
		if webLink.MatchString(b.URL) {
			list = append(list, b)
		}
	}
	return list
}

// VoteSign is the emoji of a vote.
func VoteSign(vote string) string {
	if vote == ActionGood {
		return "👍"
	}
	return "👎"
}

// finalButtons go with an ending.
func (c Console) finalButtons(t tasks.Task, e tasks.Ending) []Button {
	list := append(pullButtons(&e), c.LogButton(t.ID)...)
	if slices.ContainsFunc(e.PullRequests(), func(p *tasks.Published) bool { return p.PullRequest.Draft }) {
		list = append(list, Button{Text: "Mark as ready", Action: ActionReady, Value: t.ID})
	}
	list = append(list, Button{Text: "Try again", Action: ActionRetry, Value: t.ID})
	if e.Body() != "" {
		for _, vote := range []string{ActionGood, ActionBad} {
			list = append(list, Button{Text: VoteSign(vote), Action: vote, Value: t.ID})
		}
	}
	return list
}

// AnswerButtons offer the options of a question. Other answers go into the thread; the reason for a refusal goes
// into a dialog.
func AnswerButtons(t tasks.Task, q tasks.Question) []Button {
	var list []Button
	for i, option := range q.Options {
		b := Button{
			Text:   cmp.Or(untrusted.Short(option, maxButton), fmt.Sprintf("Answer %d", i+1)),
			Action: ActionAnswer + "/" + strconv.Itoa(i), Value: t.ID + " " + q.Key,
		}
		switch {
		case q.Consent == "":
		case option == tasks.Approve:
			b.Style = slack.StylePrimary
		case option == tasks.Deny:
			b.Action, b.Style = ActionDeny, slack.StyleDanger
		}
		list = append(list, b)
	}
	return list
}

// maxReason is the length of a reason in characters. With what is added to it, it stays within an answer.
const maxReason = 1000

// DenyDialog asks for the reason why the agent may not do something. memory comes back with the answer.
func DenyDialog(memory string) slack.ModalViewRequest {
	input := textField("Reason for the agent", "What it should do instead (optional)", maxReason)
	input.Optional = true
	return dialog(ActionDeny, memory, "Deny", "Deny", input)
}

// MaxVoteReason is the length of the reason for a vote in characters.
const MaxVoteReason = 500

// VoteDialog asks for the reason for a bad vote, which is recorded already. memory comes back with the reason.
func VoteDialog(memory string) slack.ModalViewRequest {
	return dialog(ActionBad, memory, "What was wrong?", "Send",
		textField("What was wrong?", "For the people who run errand", MaxVoteReason))
}

// maxRequest is the length of a request in a dialog in characters: the longest text that Slack takes there.
const maxRequest = 3000

// AskDialog asks for a request about a message. memory comes back with the request.
func AskDialog(memory string) slack.ModalViewRequest {
	return dialog(ActionAsk, memory, "Ask about this", "Ask",
		textField("Request", "What do you want done, or want to know?", maxRequest))
}

// textField is a field of a dialog for a text of at most n characters.
func textField(label, placeholder string, n int) *slack.InputBlock {
	field := slack.NewPlainTextInputBlockElement(plainText(placeholder), ReasonField)
	field.Multiline, field.MaxLength = true, n
	return slack.NewInputBlock(ReasonField, plainText(label), nil, field)
}

// dialog asks for the text of a field.
func dialog(name, memory, title, button string, input *slack.InputBlock) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: name, PrivateMetadata: memory, Title: plainText(title),
		Submit: plainText(button), Close: plainText("Back"), Blocks: slack.Blocks{BlockSet: []slack.Block{input}},
	}
}

func plainText(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

func mrkdwnText(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, text, false, false)
}

// NoRepository is the value of a request that works without a repository, in a scratch directory.
const NoRepository = "none"

// maxMenu is how many repositories a menu offers. Slack takes 100 options; one of them is no repository.
const maxMenu = 99

// RepositoryMenu asks which repository a task is about.
func RepositoryMenu(id string, repositories []string) (text string, blocks []slack.Block) {
	text = WhichRepository +
		" I will start when you choose one. If this menu is gone, ask again and begin with [repo=owner/name]."
	var options []*slack.OptionBlockObject
	for _, repo := range repositories[:min(len(repositories), maxMenu)] {
		options = append(options, slack.NewOptionBlockObject(repo, plainText(untrusted.Cut(repo, maxButton)), nil))
	}
	options = append(options, slack.NewOptionBlockObject(NoRepository, plainText("No repository"), nil))
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plainText("Choose a repository"),
		ActionPick, options...)
	return text, []slack.Block{
		slack.NewSectionBlock(mrkdwnText(text), nil, nil), slack.NewActionBlock(ActionPick+"/"+id, menu),
	}
}

// WhichRepository asks for the repository of a request.
const WhichRepository = "Which repository is this about?"

// moment is a time in the reader's zone. For a client that cannot format it, it is in UTC. The preposition is part of
// the format, so that Slack writes "today" in lower case.
func moment(preposition string, t time.Time) string {
	return fmt.Sprintf("<!date^%d^%s{time} {date_short_pretty}|%[2]s%s>", t.Unix(), preposition,
		t.UTC().Format("2006-01-02 15:04 UTC"))
}
