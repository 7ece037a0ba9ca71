package render

import (
	"fmt"
	"strconv"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// The actions of buttons and menus. They stay in messages as long as those exist, so do not rename them.
const (
	ActionStop   = "stop"
	ActionRetry  = "retry"
	ActionLog    = "log"    // a link: Slack opens it, and sends the press as well
	ActionPull   = "pull"   // likewise
	ActionPick   = "pick"   // a menu, in a block named after the request
	ActionGood   = "good"   // a vote
	ActionBad    = "bad"    // likewise
	ActionAnswer = "answer" // followed by a slash and the index of the option
	ActionDeny   = "deny"   // opens the dialog of that name
	ReasonField  = "reason" // of that dialog
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
		e := slack.NewButtonBlockElement(b.Action, b.Value, slack.NewTextBlockObject(slack.PlainTextType, b.Text, true, false))
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

// Console makes the links to tasks in the console at a base URL. Without one there are none.
type Console string

func (c Console) taskURL(id string) string { return string(c) + "/tasks/" + id }

// LogButton leads to a task's page.
func (c Console) LogButton(id string) []Button {
	if c == "" {
		return nil
	}
	return []Button{{Text: "Log", Action: ActionLog, URL: c.taskURL(id)}}
}

// RunButtons go with a task that has not ended.
func (c Console) RunButtons(id string) []Button {
	return append([]Button{{Text: "Stop", Action: ActionStop, Value: id, Style: slack.StyleDanger}}, c.LogButton(id)...)
}

// VoteSign is the emoji of a vote.
func VoteSign(vote string) string {
	if vote == ActionGood {
		return "👍"
	}
	return "👎"
}

// finalButtons go with an ending.
func (c Console) finalButtons(t tasks.Task, e tasks.Ending, votes bool) []Button {
	list := c.LogButton(t.ID)
	if p := e.Published; p != nil && p.PullRequest.URL != "" {
		list = append([]Button{{Text: "Pull request", Action: ActionPull, URL: p.PullRequest.URL}}, list...)
	}
	list = append(list, Button{Text: "Try again", Action: ActionRetry, Value: t.ID})
	if votes && e.Body() != "" {
		for _, vote := range []string{ActionGood, ActionBad} {
			list = append(list, Button{Text: VoteSign(vote), Action: vote, Value: t.ID})
		}
	}
	return list
}

// AnswerButtons offer the options of a question. Other answers go into the thread; the reason for a refusal goes into a dialog.
func AnswerButtons(t tasks.Task, q tasks.Question) []Button {
	var list []Button
	for i, option := range q.Options {
		b := Button{Text: Line(option, maxButton), Action: ActionAnswer + "/" + strconv.Itoa(i), Value: t.ID + " " + q.Key}
		switch {
		case b.Text == "":
			b.Text = fmt.Sprintf("Answer %d", i+1)
		case q.Consent != "" && option == tasks.Approve:
			b.Style = slack.StylePrimary
		case q.Consent != "" && option == tasks.Deny:
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
	reason := slack.NewPlainTextInputBlockElement(plainText("What it should do instead, perhaps"), ReasonField)
	reason.Multiline, reason.MaxLength = true, maxReason
	input := slack.NewInputBlock(ReasonField, plainText("Reason, for the agent"), nil, reason)
	input.Optional = true
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: ActionDeny, PrivateMetadata: memory, Title: plainText("Deny"), Submit: plainText("Deny"),
		Close: plainText("Back"), Blocks: slack.Blocks{BlockSet: []slack.Block{input}},
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
	text = WhichRepository + " I start when you choose. If this menu is gone, edit your message to begin with [repo=owner/name]."
	var options []*slack.OptionBlockObject
	for _, repo := range repositories[:min(len(repositories), maxMenu)] {
		options = append(options, slack.NewOptionBlockObject(repo, plainText(Cut(repo, maxButton)), nil))
	}
	options = append(options, slack.NewOptionBlockObject(NoRepository, plainText("No repository"), nil))
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plainText("Choose a repository"), ActionPick, options...)
	return text, []slack.Block{slack.NewSectionBlock(mrkdwnText(text), nil, nil), slack.NewActionBlock(ActionPick+"/"+id, menu)}
}

// WhichRepository asks for the repository of a request.
const WhichRepository = "Which repository is this about?"
