package slack

import (
	"regexp"
	"strings"
)

// quoteForms are the forms of code and quotes. Slack writes a typed > as &gt;; after three of them, everything is a quote.
var quoteForms = []*regexp.Regexp{
	regexp.MustCompile("(?s)```.*?```"),
	regexp.MustCompile("`[^`\n]+`"),
	regexp.MustCompile(`(?s)(?:^|\n)[ \t]*&gt;&gt;&gt;.*`),
	regexp.MustCompile(`(?m)^[ \t]*&gt;.*$`),
}

// userMention is the mention of a user, with the punctuation behind it.
var userMention = regexp.MustCompile(`<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>[,:]?[ \t]*`)

// anyMention is the mention of a user, of a group or of everyone.
var anyMention = regexp.MustCompile(`<(?:@[UW][A-Z0-9]+|!(?:subteam\^|here|channel|everyone))`)

// cutMention removes the mentions of a user from a message and reports whether there were any. Mentions in code and in quotes do not count,
// and stay: they show how to ask, or what another person asked.
func cutMention(text, user string) (rest string, ok bool) {
	if user == "" {
		return text, false
	}
	said := maskQuotes(text)
	var b strings.Builder
	last := 0
	for _, at := range userMention.FindAllStringSubmatchIndex(said, -1) {
		if said[at[2]:at[3]] != user {
			continue
		}
		b.WriteString(text[last:at[0]])
		last = at[1]
	}
	return b.String() + text[last:], last > 0
}

// mentions counts how often a message mentions a user.
func mentions(text, user string) (n int) {
	for _, m := range userMention.FindAllStringSubmatch(maskQuotes(text), -1) {
		if user != "" && m[1] == user {
			n++
		}
	}
	return n
}

// maskQuotes replaces code and quotes by as many zero bytes.
func maskQuotes(text string) string {
	if !strings.Contains(text, "`") && !strings.Contains(text, "&gt;") {
		return text // most messages
	}
	for _, form := range quoteForms {
		text = form.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\x00", len(s)) })
	}
	return text
}

var (
	token    = regexp.MustCompile(`<([^<>\n]+)>`)
	unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// decode returns a message as its author wrote it, without space around it. Users are named by their IDs.
func decode(text string) string {
	if !strings.ContainsAny(text, "<&") {
		return strings.TrimSpace(text) // most messages
	}
	text = token.ReplaceAllStringFunc(text, func(s string) string {
		target, label, _ := strings.Cut(s[1:len(s)-1], "|")
		switch {
		case target == "":
			return s
		case target[0] == '#' && label != "":
			return "#" + label
		case target[0] == '!':
			return decodeSpecial(target, label)
		case target[0] == '@', label == "", label == target:
			return target
		case target == "http://"+label, target == "https://"+label, target == "mailto:"+label, target == "tel:"+label:
			return label // Slack made a link of the typed text
		}
		return label + " (" + target + ")"
	})
	return strings.TrimSpace(unescape.Replace(text))
}

// decodeSpecial decodes a <!…>: a group, everyone, a date.
func decodeSpecial(target, label string) string {
	if label != "" {
		return label
	}
	name, _, _ := strings.Cut(target[1:], "^")
	return "@" + name
}
