package slackfake

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// tableLine is the line below the head of a Markdown table, of which Slack takes one in a message.
var (
	tableLine  = regexp.MustCompile(`(?m)^\|.*\|[ \t]*\n\|[ :|-]*-[ :|-]*\|[ \t]*$`)
	fencedCode = regexp.MustCompile("(?ms)^```.*?^```")
)

// checks is what we know of single block types.
func (l *linter) checks() map[string]func(at string, raw json.RawMessage) {
	return map[string]func(string, json.RawMessage){
		"section":  l.section,
		"header":   l.header,
		"context":  l.context,
		"actions":  l.actions,
		"markdown": l.markdownBlock,
		"input":    l.input,
		"divider":  func(string, json.RawMessage) {},
	}
}

func (l *linter) section(at string, raw json.RawMessage) {
	var b struct {
		Text      json.RawMessage `json:"text"`
		Fields    json.RawMessage `json:"fields"`
		Accessory json.RawMessage `json:"accessory"`
	}
	if !l.read(at, raw, &b) {
		return
	}
	if b.Fields != nil {
		l.invalid(at, "unsupported property: fields")
	}
	if b.Accessory != nil {
		l.invalid(at, "unsupported property: accessory")
	}
	l.text(at+"/text", b.Text, maxSection, "plain_text", "mrkdwn")
}

func (l *linter) header(at string, raw json.RawMessage) {
	var b struct {
		Text json.RawMessage `json:"text"`
	}
	if l.read(at, raw, &b) {
		l.text(at+"/text", b.Text, maxHeader, "plain_text")
	}
}

func (l *linter) context(at string, raw json.RawMessage) {
	for where, e := range l.elements(at, raw, 10) {
		l.text(where, e, maxSection, "plain_text", "mrkdwn")
	}
}

func (l *linter) actions(at string, raw json.RawMessage) {
	var ids []string
	for where, e := range l.elements(at, raw, 25) {
		id := l.element(where, e)
		if id != "" && slices.Contains(ids, id) {
			l.invalid(where+"/action_id", "action_id already exists for other element in block")
		}
		ids = append(ids, id)
	}
}

func (l *linter) markdownBlock(at string, raw json.RawMessage) {
	var b struct {
		Text string `json:"text"`
	}
	if !l.read(at, raw, &b) {
		return
	}
	if b.Text == "" {
		l.invalid(at+"/text", "must be more than 0 characters")
	}
	l.markdown += weigh(raw) // it has no other text; the sum is judged at the end
	l.tables += len(tableLine.FindAllString(fencedCode.ReplaceAllString(b.Text, ""), -1))
}

// element checks an interactive element, of which we know buttons and menus, and returns its action_id.
func (l *linter) element(at string, raw json.RawMessage) string {
	var e struct {
		ActionID string          `json:"action_id"`
		Text     json.RawMessage `json:"text"`
		Value    string          `json:"value"`
		URL      string          `json:"url"`
		Style    string          `json:"style"`
	}
	switch what := kind(raw); what {
	case "button":
	case "static_select":
		return l.menu(at, raw)
	default:
		l.invalid(at+"/type", "unsupported type: %s", what)
		return ""
	}
	if !l.read(at, raw, &e) {
		return ""
	}
	l.text(at+"/text", e.Text, 75, "plain_text")
	l.atMost(at+"/action_id", e.ActionID, 255)
	l.atMost(at+"/value", e.Value, 2_000)
	l.atMost(at+"/url", e.URL, 3_000)
	if !slices.Contains([]string{"", "primary", "danger"}, e.Style) {
		l.invalid(at+"/style", "must be one of: primary, danger")
	}
	return e.ActionID
}

// menu checks one that has its options with it.
func (l *linter) menu(at string, raw json.RawMessage) string {
	var e struct {
		ActionID    string          `json:"action_id"`
		Placeholder json.RawMessage `json:"placeholder"`
		Options     []struct {
			Text  json.RawMessage `json:"text"`
			Value string          `json:"value"`
		} `json:"options"`
	}
	if !l.read(at, raw, &e) {
		return ""
	}
	l.atMost(at+"/action_id", e.ActionID, 255)
	if e.Placeholder != nil {
		l.text(at+"/placeholder", e.Placeholder, 150, "plain_text")
	}
	l.count(at+"/options", len(e.Options), 1, 100)
	for i, o := range e.Options {
		where := fmt.Sprintf("%s/options/%d", at, i)
		l.text(where+"/text", o.Text, 75, "plain_text")
		l.atMost(where+"/value", o.Value, 150)
		if o.Value == "" {
			l.invalid(where+"/value", "must be more than 0 characters")
		}
	}
	return e.ActionID
}

// text checks a text object of one of the types.
func (l *linter) text(at string, raw json.RawMessage, limit int, types ...string) {
	var t struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Emoji *bool  `json:"emoji"`
	}
	if raw == nil {
		l.invalid(at, "missing required field: text")
		return
	}
	if !l.read(at, raw, &t) {
		return
	}
	if !slices.Contains(types, t.Type) {
		l.invalid(at+"/type", "unsupported type: %s", t.Type)
	}
	if t.Type == "mrkdwn" && t.Emoji != nil {
		l.invalid(at, "invalid additional property: emoji") // slack-go#1452
	}
	if t.Text == "" {
		l.invalid(at+"/text", "must be more than 0 characters")
	}
	l.atMost(at+"/text", t.Text, limit)
}

// elements goes over a block's elements by their place, having checked how many there are.
func (l *linter) elements(at string, raw json.RawMessage, limit int) func(yield func(string, json.RawMessage) bool) {
	var b struct {
		Elements []json.RawMessage `json:"elements"`
	}
	if l.read(at, raw, &b) {
		l.count(at+"/elements", len(b.Elements), 1, limit)
	}
	return func(yield func(string, json.RawMessage) bool) {
		for i, e := range b.Elements {
			if !yield(fmt.Sprintf("%s/elements/%d", at, i), e) {
				return
			}
		}
	}
}

func (l *linter) count(at string, n, least, most int) {
	if n < least {
		l.invalid(at, "no less than %d items allowed", least)
	}
	if n > most {
		l.invalid(at, "no more than %d items allowed", most)
	}
}

// read decodes a part of a block; a field of the wrong JSON type is a separate problem.
func (l *linter) read(at string, raw json.RawMessage, into any) bool {
	if err := json.Unmarshal(raw, into); err != nil {
		l.invalid(at, "failed to match all allowed schemas")
		return false
	}
	return true
}

// kind is the type of an element, empty if it has none.
func kind(raw json.RawMessage) string {
	var e struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &e) // not an object: no type
	return e.Type
}
