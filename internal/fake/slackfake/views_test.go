package slackfake_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func plainText(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

// dialog asks for one line.
func dialog() slack.ModalViewRequest {
	input := slack.NewInputBlock("b", plainText("Why?"), nil, slack.NewPlainTextInputBlockElement(nil, "why"))
	input.Optional = true
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: "deny", PrivateMetadata: "7", Title: plainText("Deny"),
		Submit: plainText("Deny"), Blocks: slack.Blocks{BlockSet: []slack.Block{input}},
	}
}

// A dialog opens for who has just pressed a button, once, within three seconds; what is typed comes back with what it
// remembers.
func TestDialog(t *testing.T) {
	t.Parallel()
	var late atomic.Int64
	s, c := start(t, slackfake.Config{Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
	ts := post(t, c, slack.MsgOptionText("x", false),
		slack.MsgOptionBlocks(slack.NewActionBlock("", slack.NewButtonBlockElement("go", "1", plainText("Go")))))
	a := dial(t, s, always)
	press := func() slack.InteractionCallback {
		t.Helper()
		if err := s.Press(t.Context(), alice, channel, ts, "go"); err != nil {
			t.Fatal(err)
		}
		got, _ := (<-a.events).Data.(slack.InteractionCallback)
		return got
	}
	_, err := c.OpenViewContext(t.Context(), "made up", dialog())
	want(t, "a trigger that was not given out", err, "invalid_trigger_id")
	trigger := press().TriggerID
	wrong := dialog()
	wrong.Title = plainText(strings.Repeat("x", 25))
	_, err = c.OpenViewContext(t.Context(), trigger, wrong)
	want(t, "too long a title", err, "invalid_arguments")
	if _, err := c.OpenViewContext(t.Context(), trigger, dialog()); err != nil {
		t.Fatal(err)
	}
	_, err = c.OpenViewContext(t.Context(), trigger, dialog())
	want(t, "a second time", err, "exchanged_trigger_id")
	trigger = press().TriggerID
	late.Store(int64(4 * time.Second))
	_, err = c.OpenViewContext(t.Context(), trigger, dialog())
	want(t, "too late", err, "expired_trigger_id")

	for _, typed := range []string{"", "it is Friday"} {
		if typed != "" {
			if _, err := c.OpenViewContext(t.Context(), press().TriggerID, dialog()); err != nil {
				t.Fatal(err)
			}
		}
		view := s.Views(alice)[0]
		if err := s.Submit(t.Context(), view, map[string]string{"why": typed}); err != nil {
			t.Fatal(err)
		}
		got, _ := (<-a.events).Data.(slack.InteractionCallback)
		equal(t, "submission", []string{
			string(got.Type), got.User.ID, got.View.CallbackID, got.View.PrivateMetadata,
			got.View.State.Values["b"]["why"].Value,
		},
			[]string{"view_submission", alice, "deny", "7", typed})
		equal(t, "dialogs", len(s.Views(alice)), 0)
		if err := s.Submit(t.Context(), view, nil); err == nil {
			t.Error("a closed dialog was sent off")
		}
	}
}

func TestLintView(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`7`: "failed to match all allowed schemas [json-pointer:/view]",
		`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[]}`: "no less than 1 items allowed [json-pointer:/view/blocks]",
		`{"type":"modal","blocks":[{"type":"divider"}]}`:                        "missing required field: text [json-pointer:/view/title]",
		`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[{"type":"input","label":{"type":"plain_text","text":"x"},"element":{"type":"plain_text_input","max_length":4000}}]}`: "must be less than 3001 [json-pointer:/view/blocks/0/element/max_length]\n" +
			"a submit is required for input blocks [json-pointer:/view]",
		`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[{"type":"input","element":{"type":"button"}}],"submit":{"type":"plain_text","text":"x"}}`: "missing required field: text [json-pointer:/view/blocks/0/label]\n" +
			"unsupported type: button [json-pointer:/view/blocks/0/element/type]",
	} {
		equal(t, raw, strings.Join(slackfake.LintView([]byte(raw)), "\n"), want)
	}
}
