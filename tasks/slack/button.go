package slack

import "github.com/slack-go/slack"

// The actions of our buttons. They stand in messages for as long as those exist: one that is renamed goes on to be served by its old name.
const (
	stopTask = "stop"
	tryAgain = "retry"
	openLog  = "log" // a link: Slack opens it, and tells us of it all the same
	openPull = "pull"

	pickRepository = "pick" // a menu, in a block named after the request

	good = "good"
	bad  = "bad"

	answerWith = "answer" // and a slash, and the place of the option among those of the question
	deny       = "deny"   // opens the dialog of that name
	denyReason = "reason" // the field in it
)

// maxButton is the characters of a button's text.
const maxButton = 75

// button is one below a message: what it does, to what, or where it leads.
type button struct {
	text   string
	action string
	value  string // the task it is about, and what of it
	url    string // a link, if not empty
	style  slack.Style
}

// row is a block of buttons.
func row(buttons []button) slack.Block {
	var elements []slack.BlockElement
	for _, b := range buttons {
		e := slack.NewButtonBlockElement(b.action, b.value, slack.NewTextBlockObject(slack.PlainTextType, b.text, true, false))
		e.URL, e.Style = b.url, b.style
		elements = append(elements, e)
	}
	return slack.NewActionBlock("", elements...)
}

// linked are those of the buttons that lead somewhere, in mrkdwn, for where there are no buttons.
func linked(buttons []button) (list []string) {
	for _, b := range buttons {
		if b.url != "" {
			list = append(list, "<"+escape(b.url)+"|"+b.text+">")
		}
	}
	return list
}

// runButtons are what can be done about a task that has not ended.
func (s *Source) runButtons(id string) []button {
	return append([]button{{text: "Stop", action: stopTask, value: id, style: slack.StyleDanger}}, s.logButton(id)...)
}

// logButton leads to a task's page, if there is one.
func (s *Source) logButton(id string) []button {
	if s.cfg.ConsoleURL == "" {
		return nil
	}
	return []button{{text: "Log", action: openLog, url: s.taskURL(id)}}
}
