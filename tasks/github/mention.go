package github

import (
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// What is not said but shown: blocks of code, code in a line, quotes.
var shown = []*regexp.Regexp{
	regexp.MustCompile("(?ms)^[ \t>*+.)0-9-]*```.*?(?:^[ \t>]*```|\\z)"),
	regexp.MustCompile(`(?ms)^[ \t>*+.)0-9-]*~~~.*?(?:^[ \t>]*~~~|\z)`),
	regexp.MustCompile("``[^\n]+?``|`[^`\n]+`"),
	regexp.MustCompile(`(?m)^[ \t]*>.*$`),
}

// mention is anybody's, with what is typed after it. What GitHub links as a team or takes for an address is none.
var mention = regexp.MustCompile(`(?:^|[^0-9A-Za-z_/.@-])(@([0-9A-Za-z](?:-?[0-9A-Za-z_])*(?:\[bot\])?)[,:]?[ \t]*)`)

// cutMention takes the mentions of a login out of a comment and reports whether there were any. Those in code and in quotes do not
// count, and stay: somebody shows there how one asks, or what another has asked. An App is mentioned without the [bot] of its login.
func cutMention(text, login string) (rest string, ok bool) {
	login = strings.TrimSuffix(login, "[bot]")
	if login == "" {
		return text, false
	}
	said := hidden(text)
	var b strings.Builder
	last := 0
	for _, at := range mention.FindAllStringSubmatchIndex(said, -1) {
		name, after := strings.TrimSuffix(said[at[4]:at[5]], "[bot]"), said[at[5]:]
		if !strings.EqualFold(name, login) || strings.HasPrefix(after, "/") || strings.HasPrefix(after, "@") {
			continue
		}
		b.WriteString(text[last:at[2]])
		last, ok = at[3], true
	}
	return strings.TrimSpace(b.String() + text[last:]), ok
}

// speaksTo reports whether a remark mentions a login or is a command.
func (r remark) speaksTo(login string) bool {
	text, named := cutMention(untrusted.Visible(r.body), login)
	command, _ := readCommand(text)
	return named || command != ""
}

// hidden is a comment of the same length in which nothing is left of what is only shown.
func hidden(text string) string {
	for _, form := range shown {
		text = form.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\x00", len(s)) })
	}
	return text
}
