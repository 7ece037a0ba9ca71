package slackfake

import (
	"encoding/json"
	"fmt"
)

// LintView says what Slack would hold against a dialog or a home tab, a line for each problem, as Lint does for a
// message.
func LintView(raw json.RawMessage) []string {
	var v struct {
		Type     string            `json:"type"`
		Title    json.RawMessage   `json:"title"`
		Submit   json.RawMessage   `json:"submit"`
		Close    json.RawMessage   `json:"close"`
		Metadata string            `json:"private_metadata"`
		Callback string            `json:"callback_id"`
		Blocks   []json.RawMessage `json:"blocks"`
	}
	l := &linter{}
	if !l.read("/view", raw, &v) {
		return []string{l.problems[0].detail()}
	}
	if v.Type != "home" {
		l.text("/view/title", v.Title, maxViewText, "plain_text")
	}
	for at, text := range map[string]json.RawMessage{"/view/submit": v.Submit, "/view/close": v.Close} {
		if text != nil {
			l.text(at, text, maxViewText, "plain_text")
		}
	}
	l.atMost("/view/private_metadata", v.Metadata, maxViewMetadata)
	l.atMost("/view/callback_id", v.Callback, maxBlockID)
	l.count("/view/blocks", len(v.Blocks), 1, maxViewBlocks)
	for i, b := range v.Blocks {
		l.block(fmt.Sprintf("/view/blocks/%d", i), b)
		if kind(b) == "input" && v.Submit == nil {
			l.invalid("/view", "a submit is required for input blocks")
		}
	}
	var lines []string
	for _, p := range l.problems {
		lines = append(lines, p.detail())
	}
	return lines
}

// input is a field of a dialog.
func (l *linter) input(at string, raw json.RawMessage) {
	var b struct {
		Label   json.RawMessage `json:"label"`
		Hint    json.RawMessage `json:"hint"`
		Element json.RawMessage `json:"element"`
	}
	if !l.read(at, raw, &b) {
		return
	}
	l.text(at+"/label", b.Label, maxLabel, "plain_text")
	if b.Hint != nil {
		l.text(at+"/hint", b.Hint, maxLabel, "plain_text")
	}
	var e struct {
		ActionID    string          `json:"action_id"`
		MaxLength   int             `json:"max_length"`
		Placeholder json.RawMessage `json:"placeholder"`
	}
	if kind(b.Element) != "plain_text_input" {
		l.invalid(at+"/element/type", "unsupported type: %s", kind(b.Element))
		return
	}
	if !l.read(at+"/element", b.Element, &e) {
		return
	}
	l.atMost(at+"/element/action_id", e.ActionID, 255)
	if e.MaxLength > 3_000 {
		l.invalid(at+"/element/max_length", "must be less than 3001")
	}
	if e.Placeholder != nil {
		l.text(at+"/element/placeholder", e.Placeholder, 150, "plain_text")
	}
}
