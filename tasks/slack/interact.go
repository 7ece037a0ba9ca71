package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// submitted stands before the name of a dialog that comes back.
const submitted = "submitted "

// interaction is what somebody did to a message or a dialog of ours: as much of it as we need, as with an envelope.
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

// press is a button that somebody pressed, below a message or of a dialog.
type press struct {
	action, detail string // which button it is, and which of several of its kind, or what was typed
	value          string // what it is about, or what was chosen
	block          string // the name of the block it is in
	name           string // of who did it, as people know them
	trigger        string // lets us open a dialog
	respond        string // where the message with the button can be replaced
	origin         origin // the message with the button, and who did it
}

// press reads a press of one of our buttons; false is anything else.
func (in interaction) press() (p press, ok bool) {
	switch {
	case in.Type == "block_actions" && len(in.Actions) == 1:
		p.action, p.detail, _ = strings.Cut(in.Actions[0].ActionID, "/")
		p.value, p.block, p.respond = cmp.Or(in.Actions[0].Value, in.Actions[0].SelectedOption.Value), in.Actions[0].BlockID, in.ResponseURL
		p.origin = origin{
			Team: in.Team.ID, Channel: in.Channel.ID, TS: in.Container.MessageTS, ThreadTS: cmp.Or(in.Message.ThreadTS, in.Container.ThreadTS),
		}
	case in.Type == "view_submission":
		var kept memory
		if json.Unmarshal([]byte(in.View.PrivateMetadata), &kept) != nil {
			return press{}, false
		}
		p.action, p.detail = submitted+in.View.CallbackID, in.View.State.Values[denyReason][denyReason].Value
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

// serveInteraction answers one request. Slack does not send it again: who pressed sees that it did not work, and may press again.
func (s *Source) serveInteraction(life context.Context, d *tasks.Desk, w http.ResponseWriter, r *http.Request) {
	body, status := s.signed(w, r)
	if status == http.StatusOK {
		form, err := url.ParseQuery(string(body))
		switch {
		case err != nil || !form.Has("payload"):
			status = http.StatusBadRequest
		case !s.interact(life, d, []byte(form.Get("payload"))):
			status = http.StatusServiceUnavailable
		}
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.WriteHeader(http.StatusOK) // and no body: a dialog would show one
}

// interact deals with an interaction, whatever way it came, once Slack has its answer. It is false when there are too many of them.
func (s *Source) interact(life context.Context, d *tasks.Desk, payload []byte) bool {
	s.inbound.Accepted(s.cfg.Now())
	var in interaction
	if err := json.Unmarshal(payload, &in); err != nil {
		s.log.Warn("interaction dropped", "err", err) // it would be the same again
		return true
	}
	do := s.route(d, in)
	if do == nil {
		return true
	}
	return s.pressing.Go(life, do)
}

// route finds who serves an interaction; nil where there is nothing to do, as for links.
func (s *Source) route(d *tasks.Desk, in interaction) func(context.Context) {
	p, ok := in.press()
	if !ok {
		return nil
	}
	serve, ok := map[string]func(context.Context, *tasks.Desk, press){
		stopTask: s.stop,
		tryAgain: s.tryAgain,
		good:     s.vote,
		bad:      s.vote,

		pickRepository:   s.pick,
		answerWith:       s.answer,
		deny:             s.askWhy,
		submitted + deny: s.deny,
	}[p.action]
	if !ok {
		return nil
	}
	return func(ctx context.Context) { serve(ctx, d, p) }
}
