package slackfake_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func blocks(t *testing.T, list ...slack.Block) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func repeat[T any](v T, n int) []T {
	var out []T
	for range n {
		out = append(out, v)
	}
	return out
}

func mrkdwn(n int) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.MarkdownType, strings.Repeat("ö", n), false, false)
}

func plain(n int) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, strings.Repeat("ö", n), true, false)
}

func markdown(n int) slack.Block { return slack.NewMarkdownBlock("", strings.Repeat("ö", n)) }

func button(id string, label int) *slack.ButtonBlockElement {
	return slack.NewButtonBlockElement(id, "v", plain(label))
}

func TestLintAtItsLimits(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]json.RawMessage{
		"section":   blocks(t, slack.NewSectionBlock(mrkdwn(3000), nil, nil)),
		"header":    blocks(t, slack.NewHeaderBlock(plain(150))),
		"markdown":  blocks(t, markdown(6000), markdown(6000), slack.NewDividerBlock()),
		"context":   blocks(t, slack.NewContextBlock("", mrkdwn(10))),
		"actions":   blocks(t, slack.NewActionBlock("x", button("a", 75), button("b", 1))),
		"50 blocks": blocks(t, repeat[slack.Block](slack.NewDividerBlock(), 50)...),
		// 5 · (2550 + 125) = 13375
		"whole":       blocks(t, repeat[slack.Block](slack.NewSectionBlock(mrkdwn(2550), nil, nil), 5)...),
		"same action": blocks(t, slack.NewActionBlock("x", button("a", 1)), slack.NewActionBlock("y", button("a", 1))),
	} {
		if got := slackfake.Lint(raw, ""); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := slackfake.Lint(nil, strings.Repeat("ö", 40_000)); got != nil {
		t.Errorf("text: %q", got)
	}
}

func TestLintBeyondItsLimits(t *testing.T) {
	t.Parallel()
	section := func(text *slack.TextBlockObject) json.RawMessage {
		return blocks(t, slack.NewSectionBlock(text, nil, nil))
	}
	actions := func(list ...slack.BlockElement) json.RawMessage { return blocks(t, slack.NewActionBlock("x", list...)) }
	for want, raw := range map[string]json.RawMessage{
		"no_text: neither text nor blocks":                                                           nil,
		"invalid_blocks_format: must be a JSON array [json-pointer:/blocks]":                         []byte(`{"type":"divider"}`),
		"invalid_blocks: must be an object with a type [json-pointer:/blocks/0]":                     []byte(`["x"]`),
		"invalid_blocks: unsupported type: hologram [json-pointer:/blocks/0/type]":                   []byte(`[{"type":"hologram"}]`),
		"invalid_blocks: failed to match all allowed schemas [json-pointer:/blocks/0/text]":          []byte(`[{"type":"section","text":"x"}]`),
		"invalid_blocks: missing required field: text [json-pointer:/blocks/0/text]":                 []byte(`[{"type":"header"}]`),
		"invalid_blocks: no less than 1 items allowed [json-pointer:/blocks/0/elements]":             []byte(`[{"type":"context","elements":[]}]`),
		"invalid_blocks: unsupported type:  [json-pointer:/blocks/0/elements/0/type]":                []byte(`[{"type":"actions","elements":[{}]}]`),
		"invalid_blocks: unsupported type: html [json-pointer:/blocks/0/text/type]":                  []byte(`[{"type":"section","text":{"type":"html","text":"x"}}]`),
		"invalid_blocks: invalid additional property: emoji [json-pointer:/blocks/0/text]":           []byte(`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`),
		"invalid_blocks: unsupported property: fields [json-pointer:/blocks/0]":                      []byte(`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"fields":[]}]`),
		"invalid_blocks: unsupported property: accessory [json-pointer:/blocks/0]":                   []byte(`[{"type":"section","text":{"type":"mrkdwn","text":"x"},"accessory":{"type":"image"}}]`),
		"invalid_blocks: no more than 50 items allowed [json-pointer:/blocks]":                       blocks(t, repeat[slack.Block](slack.NewDividerBlock(), 51)...),
		"invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/text/text]":       section(mrkdwn(3001)),
		"invalid_blocks: must be more than 0 characters [json-pointer:/blocks/0/text/text]":          section(mrkdwn(0)),
		"invalid_blocks: must be less than 151 characters [json-pointer:/blocks/0/text/text]":        blocks(t, slack.NewHeaderBlock(plain(151))),
		"invalid_blocks: unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]":                blocks(t, slack.NewHeaderBlock(mrkdwn(1))),
		"invalid_blocks: must be more than 0 characters [json-pointer:/blocks/0/text]":               blocks(t, markdown(0)),
		"invalid_blocks: no more than 10 items allowed [json-pointer:/blocks/0/elements]":            blocks(t, slack.NewContextBlock("", repeat[slack.MixedElement](mrkdwn(1), 11)...)),
		"invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/elements/1/text]": blocks(t, slack.NewContextBlock("", mrkdwn(1), mrkdwn(3001))),
		"msg_blocks_too_long: markdown blocks have 12001 characters, 12000 are allowed [json-pointer:/blocks]": blocks(t,
			markdown(6000), markdown(6001)),
		"msg_blocks_too_long: blocks are worth 13425 characters, 13422 are allowed [json-pointer:/blocks]": blocks(t,
			repeat[slack.Block](slack.NewSectionBlock(mrkdwn(2560), nil, nil), 5)...),
		"only_one_table_allowed: 2 tables, one is allowed [json-pointer:/blocks]": blocks(t,
			slack.NewMarkdownBlock("", "| a |\n|---|\n"), slack.NewMarkdownBlock("", "| b |\n|---|\n")),
		"invalid_blocks: action_id already exists for other element in block [json-pointer:/blocks/0/elements/1/action_id]": actions(
			button("a", 1), button("a", 1)),
		"invalid_blocks: block_id already exists for other block in message [json-pointer:/blocks/1/block_id]": blocks(t,
			slack.NewActionBlock("x", button("a", 1)), slack.NewActionBlock("x", button("b", 1))),
		"invalid_blocks: must be less than 256 characters [json-pointer:/blocks/0/block_id]": blocks(t,
			slack.NewMarkdownBlock(strings.Repeat("x", 256), "x")),
		"invalid_blocks: must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]": actions(button("a", 76)),
		"invalid_blocks: must be less than 256 characters [json-pointer:/blocks/0/elements/0/action_id]": actions(
			button(strings.Repeat("a", 256), 1)),
		"invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/elements/0/url]": actions(
			button("a", 1).WithURL(strings.Repeat("u", 3001))),
		"invalid_blocks: must be one of: primary, danger [json-pointer:/blocks/0/elements/0/style]": actions(
			button("a", 1).WithStyle("loud")),
		"invalid_blocks: unsupported type: mrkdwn [json-pointer:/blocks/0/elements/0/text/type]": actions(
			slack.NewButtonBlockElement("a", "v", mrkdwn(1))),
		"invalid_blocks: must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]": actions(
			slack.NewButtonBlockElement("a", strings.Repeat("v", 2001), plain(1))),
	} {
		if got := slackfake.Lint(raw, ""); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLintMenu(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{
		`"options":[]`: "no less than 1 items allowed [json-pointer:/blocks/0/elements/0/options]",
		`"options":[{"text":{"type":"mrkdwn","text":"x"},"value":""}]`: "unsupported type: mrkdwn [json-pointer:/blocks/0/elements/0/options/0/text/type]\n" +
			"must be more than 0 characters [json-pointer:/blocks/0/elements/0/options/0/value]",
	} {
		blocks := `[{"type":"actions","elements":[{"type":"static_select","action_id":"a",` + element + `}]}]`
		equal(t, element, strings.ReplaceAll(strings.Join(slackfake.Lint([]byte(blocks), "x"), "\n"),
			"invalid_blocks: ", ""), want)
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
