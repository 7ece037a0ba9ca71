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
		"fields":    blocks(t, slack.NewSectionBlock(nil, repeat(mrkdwn(1000), 10), nil)),
		"accessory": blocks(t, slack.NewSectionBlock(mrkdwn(1), nil, slack.NewAccessory(button("a", 75)))),
		"header":    blocks(t, slack.NewHeaderBlock(plain(150))),
		"markdown":  blocks(t, markdown(6000), markdown(6000), slack.NewDividerBlock()),
		"context": blocks(t, slack.NewContextBlock("", mrkdwn(10),
			slack.NewImageBlockElement("https://example.com/i.png", "alt"))),
		"actions":   blocks(t, slack.NewActionBlock("x", button("a", 1), button("b", 1))),
		"image":     blocks(t, slack.NewImageBlock("https://example.com/i.png", "alt", "", nil)),
		"50 blocks": blocks(t, repeat[slack.Block](slack.NewDividerBlock(), 50)...),
		"rich text": blocks(t, slack.NewRichTextBlock("",
			slack.NewRichTextSection(slack.NewRichTextSectionTextElement("hi", nil)))),
		"task card": json.RawMessage(`[{"type":"task_card","task_id":"t","title":"work","status":"in_progress"}]`),
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
	for name, tc := range map[string]struct {
		raw  json.RawMessage
		want string
	}{
		"nothing": {nil, "no_text: neither text nor blocks"},
		"no array": {
			json.RawMessage(`{"type":"divider"}`), "invalid_blocks_format: must be a JSON array [json-pointer:/blocks]",
		},
		"no JSON": {json.RawMessage(`[`), "invalid_blocks_format: must be a JSON array [json-pointer:/blocks]"},
		"no block": {
			json.RawMessage(`["x"]`), "invalid_blocks: must be an object with a type [json-pointer:/blocks/0]",
		},
		"no such block": {
			json.RawMessage(`[{"type":"hologram"}]`),
			"invalid_blocks: unsupported type: hologram [json-pointer:/blocks/0/type]",
		},
		"wrong shape": {
			json.RawMessage(`[{"type":"section","text":"x"}]`),
			"invalid_blocks: failed to match all allowed schemas [json-pointer:/blocks/0/text]",
		},
		"51 blocks": {
			blocks(t, repeat[slack.Block](slack.NewDividerBlock(), 51)...),
			"invalid_blocks: no more than 50 items allowed [json-pointer:/blocks]",
		},
		"section": {
			blocks(t, slack.NewSectionBlock(mrkdwn(3001), nil, nil)),
			"invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/text/text]",
		},
		"empty section": {
			blocks(t, slack.NewSectionBlock(mrkdwn(0), nil, nil)),
			"invalid_blocks: must be more than 0 characters [json-pointer:/blocks/0/text/text]",
		},
		"bare section": {
			blocks(t, slack.NewSectionBlock(nil, nil, nil)),
			"invalid_blocks: must define either `text` or `fields` [json-pointer:/blocks/0]",
		},
		"field": {
			blocks(t, slack.NewSectionBlock(nil, repeat(mrkdwn(2001), 1), nil)),
			"invalid_blocks: must be less than 2001 characters [json-pointer:/blocks/0/fields/0/text]",
		},
		"11 fields": {
			blocks(t, slack.NewSectionBlock(nil, repeat(mrkdwn(1), 11), nil)),
			"invalid_blocks: no more than 10 items allowed [json-pointer:/blocks/0/fields]",
		},
		"emoji": {
			json.RawMessage(`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`),
			"invalid_blocks: invalid additional property: emoji [json-pointer:/blocks/0/text]",
		},
		"text type": {
			json.RawMessage(`[{"type":"section","text":{"type":"html","text":"x"}}]`),
			"invalid_blocks: unsupported type: html [json-pointer:/blocks/0/text/type]",
		},
		"accessory": {
			blocks(t, slack.NewSectionBlock(mrkdwn(1), nil, slack.NewAccessory(button("a", 76)))),
			"invalid_blocks: must be less than 76 characters [json-pointer:/blocks/0/accessory/text/text]",
		},
		"header": {
			blocks(t, slack.NewHeaderBlock(plain(151))),
			"invalid_blocks: must be less than 151 characters [json-pointer:/blocks/0/text/text]",
		},
		"header mrkdwn": {
			blocks(t, slack.NewHeaderBlock(mrkdwn(1))),
			"invalid_blocks: unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]",
		},
		"header bare": {
			json.RawMessage(`[{"type":"header"}]`),
			"invalid_blocks: missing required field: text [json-pointer:/blocks/0/text]",
		},
		"markdown": {
			blocks(t, markdown(6000), markdown(6001)),
			"msg_blocks_too_long: markdown blocks have 12001 characters, 12000 are allowed [json-pointer:/blocks]",
		},
		"no markdown": {
			blocks(t, markdown(0)), "invalid_blocks: must be more than 0 characters [json-pointer:/blocks/0/text]",
		},
		"whole": {
			blocks(t, repeat[slack.Block](slack.NewSectionBlock(mrkdwn(2560), nil, nil), 5)...),
			"msg_blocks_too_long: blocks are worth 13425 characters, 13422 are allowed [json-pointer:/blocks]",
		},
		"empty context": {
			json.RawMessage(`[{"type":"context","elements":[]}]`),
			"invalid_blocks: no less than 1 items allowed [json-pointer:/blocks/0/elements]",
		},
		"full context": {
			blocks(t, slack.NewContextBlock("", repeat[slack.MixedElement](mrkdwn(1), 11)...)),
			"invalid_blocks: no more than 10 items allowed [json-pointer:/blocks/0/elements]",
		},
		"context text": {
			blocks(t, slack.NewContextBlock("", mrkdwn(1), mrkdwn(3001))),
			"invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/elements/1/text]",
		},
		"context image": {
			blocks(t, slack.NewContextBlock("",
				slack.NewImageBlockElement("https://example.com/i.png", ""))),
			"invalid_blocks: missing required field: alt_text [json-pointer:/blocks/0/elements/0]",
		},
		"image": {
			json.RawMessage(`[{"type":"image","alt_text":"x"}]`),
			"invalid_blocks: must define either `image_url` or `slack_file` [json-pointer:/blocks/0]",
		},
		"26 buttons": {
			json.RawMessage(`[{"type":"actions","elements":[` +
				strings.Repeat(`{"type":"overflow"},`, 25) + `{"type":"overflow"}]}]`),
			"invalid_blocks: no more than 25 items allowed [json-pointer:/blocks/0/elements]",
		},
		"same action": {
			blocks(t, slack.NewActionBlock("x", button("a", 1), button("a", 1))),
			"invalid_blocks: action_id already exists for other element in block [json-pointer:/blocks/0/elements/1/action_id]",
		},
		"same block": {
			blocks(t, slack.NewActionBlock("x", button("a", 1)),
				slack.NewActionBlock("x", button("b", 1))),
			"invalid_blocks: block_id already exists for other block in message [json-pointer:/blocks/1/block_id]",
		},
		"long block id": {
			blocks(t, slack.NewMarkdownBlock(strings.Repeat("x", 256), "x")),
			"invalid_blocks: must be less than 256 characters [json-pointer:/blocks/0/block_id]",
		},
		"button id": {
			blocks(t, slack.NewActionBlock("x", button(strings.Repeat("a", 256), 1))),
			"invalid_blocks: must be less than 256 characters [json-pointer:/blocks/0/elements/0/action_id]",
		},
		"button url": {
			blocks(t, slack.NewActionBlock("x", button("a", 1).WithURL(strings.Repeat("u", 3001)))),
			"invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/elements/0/url]",
		},
		"accessory image": {
			blocks(t, slack.NewSectionBlock(mrkdwn(1), nil,
				slack.NewAccessory(slack.NewImageBlockElement("https://example.com/i.png", "")))),
			"invalid_blocks: missing required field: alt_text [json-pointer:/blocks/0/accessory]",
		},
		"long alt text": {
			blocks(t, slack.NewImageBlock("https://example.com/i.png",
				strings.Repeat("x", 2001), "", nil)),
			"invalid_blocks: must be less than 2001 characters [json-pointer:/blocks/0/alt_text]",
		},
		"button style": {
			blocks(t, slack.NewActionBlock("x", button("a", 1).WithStyle("loud"))),
			"invalid_blocks: must be one of: primary, danger [json-pointer:/blocks/0/elements/0/style]",
		},
		"button mrkdwn": {
			blocks(t, slack.NewActionBlock("x", slack.NewButtonBlockElement("a", "v", mrkdwn(1)))),
			"invalid_blocks: unsupported type: mrkdwn [json-pointer:/blocks/0/elements/0/text/type]",
		},
		"button value": {
			blocks(t, slack.NewActionBlock("x",
				slack.NewButtonBlockElement("a", strings.Repeat("v", 2001), plain(1)))),
			"invalid_blocks: must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]",
		},
		"element untyped": {
			json.RawMessage(`[{"type":"actions","elements":[{}]}]`),
			"invalid_blocks: missing required field: type [json-pointer:/blocks/0/elements/0/type]",
		},
	} {
		got := slackfake.Lint(tc.raw, "")
		if len(got) != 1 || got[0] != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestLintTellsEverythingInOrder(t *testing.T) {
	t.Parallel()
	raw := blocks(t, slack.NewHeaderBlock(plain(151)), markdown(0), slack.NewSectionBlock(mrkdwn(3001), nil, nil))
	var codes []string
	for _, line := range slackfake.Lint(raw, strings.Repeat("x", 40_001)) {
		code, _, _ := strings.Cut(line, ":")
		codes = append(codes, code)
	}
	equal(t, "codes", codes, []string{"message_truncated", "invalid_blocks", "invalid_blocks", "invalid_blocks"})
}
