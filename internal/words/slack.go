package words

import (
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// Slack reads a text in the notation of Slack's events and Web API. user is errand's ID; empty for nobody's. Users are
// named by their IDs.
func Slack(s, user string) Words {
	r := slackReader{user: user}
	code, quoted, toEnd := 0, false, false // code is where the last code ends
	for at := 0; at < len(s); {
		rest, free := s[at:], at >= code
		if free && (at == 0 || s[at-1] == '\n') {
			line := strings.TrimLeft(rest, " \t")
			toEnd = toEnd || strings.HasPrefix(line, quoteSign+quoteSign+quoteSign)
			quoted = toEnd || strings.HasPrefix(line, quoteSign)
		}
		if free && rest[0] == '`' {
			code = at + codeLength(rest)
		}
		if token := tokenOf(rest); token != "" {
			at += r.read(token, rest[len("<>")+len(token):], free && !quoted)
			continue
		}
		r.put(rest[:1])
		at++
	}
	r.words.All, r.words.Text = unescaped(r.all.String()), unescaped(r.text.String())
	return r.words
}

// quoteSign begins a quoted line, as Slack escapes a typed >. Three of them begin a quotation of all that follows.
const quoteSign = "&gt;"

// codeLength returns the length of the block or the span of code that begins a text; 0 if its backtick begins none.
func codeLength(s string) int {
	if found := block.FindString(s); found != "" {
		return len(found)
	}
	n := strings.IndexAny(s[1:], "`\n")
	if n <= 0 || s[1+n] == '\n' {
		return 0
	}
	// A block is no end of a span. Of four backticks, the first ends the span.
	if end := s[1+n:]; block.MatchString(end) && !strings.HasPrefix(end, "````") {
		return 0
	}
	return n + len("``")
}

// block matches the block of code that begins a text.
var block = regexp.MustCompile("(?s)^```.*?```")

// tokenOf returns what is between < and > at the beginning of a text, such as @U0ANN or https://a.example|words; or
// nothing.
func tokenOf(s string) string {
	if s[0] != '<' {
		return ""
	}
	end := strings.IndexAny(s[1:], "<>\n")
	if end < 0 || s[1+end] != '>' {
		return ""
	}
	return s[1 : 1+end]
}

// slackReader collects the words of a text.
type slackReader struct {
	user      string
	words     Words
	all, text strings.Builder // still escaped
}

func (r *slackReader) put(s string) {
	_, _ = r.all.WriteString(s) // it never fails
	_, _ = r.text.WriteString(s)
}

// read reads a token, which the author says themselves if own is set, and returns its length. The punctuation and the
// blanks after a mention of errand belong to it.
func (r *slackReader) read(token, after string, own bool) (length int) {
	target, label, _ := strings.Cut(token, "|")
	length = len("<>") + len(token)
	if own && r.user != "" && target == "@"+r.user {
		r.words.Ours++
		rest := strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(after, ","), ":"), " \t")
		pause := after[:len(after)-len(rest)]
		_, _ = r.all.WriteString(target + pause)
		return length + len(pause)
	}
	if own && isMention(target) {
		r.words.Others++
	}
	r.put(shown(target, label))
	return length
}

// isMention reports whether a token is of a user, a group or everyone.
func isMention(target string) bool {
	return len(target) > 1 && (target[0] == '@' || target[0] == '!' && !strings.HasPrefix(target, "!date"))
}

// shown returns what people see of a token, which is a user, a channel, a group, everyone, a date or a link, perhaps
// with a label.
func shown(target, label string) string {
	switch {
	case target == "":
		return "<|" + label + ">" // somebody typed it
	case target[0] == '#' && label != "":
		return "#" + label
	case target[0] == '!' && label != "":
		return label
	case target[0] == '!':
		name, _, _ := strings.Cut(target[1:], "^")
		return "@" + name
	case target[0] == '@', label == "", label == target:
		return target
	case target == "http://"+label, target == "https://"+label, target == "mailto:"+label, target == "tel:"+label:
		return label // Slack made a link of the typed text
	}
	return label + " (" + target + ")"
}

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func unescaped(s string) string { return untrusted.Plain(unescape.Replace(s)) }
