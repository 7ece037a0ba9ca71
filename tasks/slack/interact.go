package slack

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/errand-fleet/errand/tasks/slack/render"
)

// submitted precedes the name of a dialog that was submitted.
const submitted = "submitted "

// interaction is what a user did with a message or a dialog of the bot. Like an envelope it has only the fields that errand needs.
type interaction struct {
	Type string `json:"type"`
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Name     string `json:"name"`
	} `json:"user"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		MessageTS string `json:"message_ts"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		ActionID       string `json:"action_id"`
		BlockID        string `json:"block_id"`
		Value          string `json:"value"`
		SelectedOption struct {
			Value string `json:"value"`
		} `json:"selected_option"`
	} `json:"actions"`
	ResponseURL string `json:"response_url"`
	TriggerID   string `json:"trigger_id"`
	View        struct {
		CallbackID      string `json:"callback_id"`
		PrivateMetadata string `json:"private_metadata"`
		State           struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// press is a press of a button, below a message or of a dialog.
type press struct {
	action, detail string // which button it is; its number, or the typed text
	value          string // what the button is about, or what was chosen
	block          string // the name of the block it is in
	name           string // of the user, as people know them
	trigger        string // lets the app open a dialog
	respond        string // URL at which the message with the button can be replaced
	origin         origin // the message with the button, and the user
}

// press reads a press of a button; false for anything else.
func (in interaction) press() (p press, ok bool) {
	switch {
	case in.Type == "block_actions" && len(in.Actions) == 1:
		p.action, p.detail, _ = strings.Cut(in.Actions[0].ActionID, "/")
		p.value, p.block, p.respond = cmp.Or(in.Actions[0].Value, in.Actions[0].SelectedOption.Value), in.Actions[0].BlockID, in.ResponseURL
		p.origin = origin{
			Team: in.Team.ID, Channel: in.Channel.ID, TS: in.Container.MessageTS, ThreadTS: cmp.Or(in.Message.ThreadTS, in.Container.ThreadTS),
		}
	case in.Type == "view_submission":
		var kept dialogMemory
		if json.Unmarshal([]byte(in.View.PrivateMetadata), &kept) != nil {
			return press{}, false
		}
		p.action, p.detail = submitted+in.View.CallbackID, in.View.State.Values[render.ReasonField][render.ReasonField].Value
		p.value, p.origin = kept.Value, kept.Origin
	default:
		return press{}, false
	}
	p.origin.User, p.trigger = in.User.ID, in.TriggerID
	p.name = "@" + cmp.Or(in.User.Username, in.User.Name, in.User.ID)
	o := p.origin
	valid := teamForm.fits(o.Team) && channelForm.fits(o.Channel) && userForm.fits(o.User) && isTS(o.TS) &&
		(o.ThreadTS == "" || isTS(o.ThreadTS))
	return p, valid
}

// question splits the value of a button below a question into the task and the question's key.
func (p press) question() (id, key string) {
	id, key, _ = strings.Cut(p.value, " ")
	return id, key
}
