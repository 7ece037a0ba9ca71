package slackfake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of Slack's reference (Block Kit, chat.postMessage), in characters unless said otherwise.
const (
	maxText     = 40_000 // of the message; Slack cuts the rest off and warns
	maxBlocks   = 50     // blocks
	maxBlockID  = 255
	maxSection  = 3_000
	maxLabel    = 2_000 // of an input
	maxHeader   = 150
	maxMarkdown = 12_000 // of all markdown blocks of the message together

	// Slack also bounds the message as a whole, which no reference tells: one markdown block may have 13,297
	// characters, with a divider beside it 13,172 (bolt-js#2509). We read that as 125 for each block, which also
	// explains bolt-js#2867.
	maxTotal  = 13_297 + blockCost
	blockCost = 125
)

// textTruncated is no refusal but a warning: Slack's own name for it.
const textTruncated = "message_truncated"

// Lint says what Slack would hold against a message: one line for each problem, beginning with Slack's error code, as
// "invalid_blocks: must be less than 3001 characters [json-pointer:/blocks/0/text/text]". The fake refuses a message
// for the same problems, except for message_truncated: then the text is cut. The 4,000 characters of text that
// chat.update takes are not in it.
//
// It knows the blocks that errand writes and refuses others: better said than swallowed.
func Lint(blocks json.RawMessage, text string) []string {
	var lines []string
	for _, p := range lint(blocks, text) {
		lines = append(lines, p.code+": "+p.detail())
	}
	return lines
}

// problem is one reason for Slack to refuse a message.
type problem struct {
	code    string
	message string
	pointer string // JSON pointer; empty if it is about the message
}

// detail is the problem as in the errors of Slack's response.
func (p problem) detail() string {
	if p.pointer == "" {
		return p.message
	}
	return fmt.Sprintf("%s [json-pointer:%s]", p.message, p.pointer)
}

// linter gathers the problems of one message.
type linter struct {
	problems []problem
	markdown int // characters in markdown blocks so far
	tables   int // in markdown blocks, and table blocks
	total    int // of the message, block costs included
	blockIDs []string
}

func lint(blocks json.RawMessage, text string) []problem {
	l := &linter{}
	if n := utf8.RuneCountInString(text); n > maxText {
		l.add(textTruncated, "", "text has %d characters, %d are kept", n, maxText)
	}
	if noBlocks(blocks) {
		if text == "" {
			l.add("no_text", "", "neither text nor blocks")
		}
		return l.problems
	}
	var list []json.RawMessage
	if err := json.Unmarshal(blocks, &list); err != nil {
		l.add("invalid_blocks_format", "/blocks", "must be a JSON array")
		return l.problems
	}
	if len(list) > maxBlocks {
		l.invalid("/blocks", "no more than %d items allowed", maxBlocks)
	}
	for i, raw := range list {
		l.block(fmt.Sprintf("/blocks/%d", i), raw)
	}
	if l.tables > 1 {
		l.add("only_one_table_allowed", "/blocks", "%d tables, one is allowed", l.tables)
	}
	if l.markdown > maxMarkdown {
		l.add("msg_blocks_too_long", "/blocks", "markdown blocks have %d characters, %d are allowed",
			l.markdown, maxMarkdown)
	}
	if l.total > maxTotal {
		l.add("msg_blocks_too_long", "/blocks", "blocks are worth %d characters, %d are allowed", l.total, maxTotal)
	}
	return l.problems
}

// block checks what all blocks have in common and passes on to what is special to its type.
func (l *linter) block(at string, raw json.RawMessage) {
	var b struct {
		Type    string `json:"type"`
		BlockID string `json:"block_id"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		l.invalid(at, "must be an object with a type")
		return
	}
	check, known := l.checks()[b.Type]
	if !known {
		l.invalid(at+"/type", "unsupported type: %s", b.Type)
		return
	}
	if b.BlockID != "" {
		l.atMost(at+"/block_id", b.BlockID, maxBlockID)
		if slices.Contains(l.blockIDs, b.BlockID) {
			l.invalid(at+"/block_id", "block_id already exists for other block in message")
		}
		l.blockIDs = append(l.blockIDs, b.BlockID)
	}
	l.total += blockCost + weigh(raw)
	check(at, raw)
}

// weigh counts the characters of all "text" in a block, however deep.
func weigh(raw json.RawMessage) int {
	var v any
	_ = json.Unmarshal(raw, &v) // it has been read before
	var walk func(any) int
	walk = func(v any) (n int) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				n += walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if text, ok := item.(string); ok && key == "text" {
					n += utf8.RuneCountInString(text)
				}
				n += walk(item)
			}
		}
		return n
	}
	return walk(v)
}

func noBlocks(raw json.RawMessage) bool {
	s := strings.TrimSpace(string(raw))
	return s == "" || s == "null" || s == "[]"
}

func (l *linter) add(code, at, format string, args ...any) {
	l.problems = append(l.problems, problem{code, fmt.Sprintf(format, args...), at})
}

func (l *linter) invalid(at, format string, args ...any) {
	l.add("invalid_blocks", at, format, args...)
}

func (l *linter) atMost(at, text string, limit int) {
	if utf8.RuneCountInString(text) > limit {
		l.invalid(at, "must be less than %d characters", limit+1)
	}
}
