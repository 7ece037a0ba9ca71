package slack

import (
	"regexp"
	"strings"
)

// What is not said but shown: blocks of code, code in a line, quotes. Slack writes a typed > as &gt;, and with three of them all that
// follows is a quote.
var shown = []*regexp.Regexp{
	regexp.MustCompile("(?s)```.*?```"),
	regexp.MustCompile("`[^`\n]+`"),
	regexp.MustCompile(`(?s)(?:^|\n)[ \t]*&gt;&gt;&gt;.*`),
	regexp.MustCompile(`(?m)^[ \t]*&gt;.*$`),
}

// mention is anybody's, with what is typed after it.
var mention = regexp.MustCompile(`<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>[,:]?[ \t]*`)

// call is anybody's as well, or that of a group or of all who are there.
var call = regexp.MustCompile(`<(?:@[UW][A-Z0-9]+|!(?:subteam\^|here|channel|everyone))`)

// cutMention takes the mentions of a user out of a message and reports whether there were any. Those in code and in quotes do not
// count, and stay: somebody shows there how one asks, or what another has asked.
func cutMention(text, user string) (rest string, ok bool) {
	if user == "" {
		return text, false
	}
	said := hidden(text)
	var b strings.Builder
	last := 0
	for _, at := range mention.FindAllStringSubmatchIndex(said, -1) {
		if said[at[2]:at[3]] != user {
			continue
		}
		b.WriteString(text[last:at[0]])
		last = at[1]
	}
	return b.String() + text[last:], last > 0
}

// mentions counts how often a message speaks to a user.
func mentions(text, user string) (n int) {
	for _, m := range mention.FindAllStringSubmatch(hidden(text), -1) {
		if user != "" && m[1] == user {
			n++
		}
	}
	return n
}

// hidden is a message of the same length in which nothing is left of what is only shown.
func hidden(text string) string {
	if !strings.Contains(text, "`") && !strings.Contains(text, "&gt;") {
		return text // most messages
	}
	for _, form := range shown {
		text = form.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\x00", len(s)) })
	}
	return text
}

var (
	token    = regexp.MustCompile(`<([^<>\n]+)>`)
	unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

// decode gives a message of Slack's as its author wrote it, without space around it. People are named by their IDs.
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
			return special(target, label)
		case target[0] == '@', label == "", label == target:
			return target
		case target == "http://"+label, target == "https://"+label, target == "mailto:"+label, target == "tel:"+label:
			return label // Slack has made a link of what was typed
		}
		return label + " (" + target + ")"
	})
	return strings.TrimSpace(unescape.Replace(text))
}

// special is a <!…>: a group, everybody here, a date.
func special(target, label string) string {
	if label != "" {
		return label
	}
	name, _, _ := strings.Cut(target[1:], "^")
	return "@" + name
}
