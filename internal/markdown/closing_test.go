package markdown

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
)

func TestUnclosing(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Fixes acme/x#3.":                    "F" + z + "ixes acme/x#3.",
		"fix: #3, CLOSED #4":                 "f" + z + "ix: #3, C" + z + "LOSED #4",
		"Resolves\n> GH-3":                   "R" + z + "esolves\n> GH-3",
		"**Closes** https://a/b/3":           "**C" + z + "loses** https://a/b/3",
		"_Fixes_ #3, __closes__ #4":          "_F" + z + "ixes_ #3, __c" + z + "loses__ #4",
		"fixes [it](https://a/b/issues/3)":   "f" + z + "ixes [it](https://a/b/issues/3)",
		"fi[x](/a)es #3":                     "f" + z + "i[x](/a)es #3",
		"closes &#35;3":                      "c" + z + "loses &#35;3",
		"f&#105;xes #3":                      "f" + z + "&#105;xes #3",
		"fixes closes&colon; #3":             "f" + z + "ixes c" + z + "loses&colon; #3",
		"It fixes the bug and closes files.": "It fixes the bug and closes files.",
		"prefix #3, a fixture. `fixes #3`":   "prefix #3, a fixture. `fixes #3`",
		"```\nFixes #3\n```":                 "```\nFixes #3\n```",
		"[x](docs/fix.md#3) https://a/fix/3": "[x](docs/fix.md#3) https://a/fix/3",
		"a | b\n--|--\n[a | b](fixes:#1)":    "a | b\n--|--\n[a | b](f" + z + "ixes:#1)",
	} {
		if got := Unclosing(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

var (
	code      = regexp.MustCompile(`(?s)<code.*?</code>`)
	markup    = regexp.MustCompile(`<[^>]*>`)
	closes    = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?)\b[\s:]+(?:[\w./-]*#|GH-|https?://\S+/)[0-9]`)
	mentioned = regexp.MustCompile(`(?:^|[^0-9A-Za-z])@[0-9A-Za-z]`)
)

// onPage returns the text of a page with entities decoded, and a backtick instead of code.
func onPage(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	if err := goldmark.Convert([]byte(s), &b); err != nil {
		t.Fatal(err)
	}
	return html.UnescapeString(markup.ReplaceAllString(code.ReplaceAllString(b.String(), "`"), ""))
}

// effective matches text that closes an issue or mentions someone.
var effective = []string{
	"fixes #1", "f&#105;xes #1", "&#102;ixes #1", "&#x46;IXES #1", "fixe&#0115; #1", "fixes &#35;1", "fixes &num;1",
	"fixes #&#49;", "f&#105;xes &#35;&#49;", "fixes&#32;#1", "fixes&#10;#1", "fixes&Tab;#1", "fixes&colon; #1",
	"fixes \\#1", "closes acme&sol;x#1", "closes acme/&#120;#1", "resolves G&#72;-1",
	"resolves https&colon;//github.com/a/b/issues/1", "resolves https://github.com/a/b/issues/&#49;",
	"&#114;esolved\n#1", "- > f&#105;xed #1", "[f&#105;xed](/a) #1",
	"&#64;octocat", "&commat;octocat", "&#x40;&#111;ctocat", "@&#111;ctocat", "a &#00064;acme/team",
	"_Fixes_ #3", "__Closes__ #3", "fi**xes** #1", "fi[x](/a)es #1", "fi[x][y]es #1\n\n[y]: /a",
	"[fi](</a)b> \"c)\")[xes](/b) #1", "f\\&#105;x fixes #1",
	"fixes closes&colon; #3", "fixes closes&#32;#3", "fixes\\\n#1", "fixes #[1](/a)", "fixes G**H**-1",
	"\\&#97;fixes #1", "[https://a](/x)-fi[x](/b)es #1",
	"https://a/fi[x](/b)es #1", "fixes\n\n- #1", "<https://a/fix> #1",
}

// GitHub looks for keywords and mentions in the rendered text.
func TestEntitiesCloseAndMentionNothing(t *testing.T) {
	t.Parallel()
	for _, in := range effective {
		if text := onPage(t, in); !closes.MatchString(text) && !mentioned.MatchString(text) {
			t.Errorf("%q is harmless: %q", in, text)
		}
		got := Unclosing(Neutral(in))
		if text := onPage(t, got); closes.MatchString(text) || mentioned.MatchString(text) {
			t.Errorf("%q becomes %q, on a page %q", in, got, text)
		}
	}
}

func FuzzUnclosing(f *testing.F) {
	for _, in := range effective {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := Unclosing(Neutral(in))
		if text := onPage(t, got); closes.MatchString(text) {
			t.Errorf("%q becomes %q, on a page %q", in, got, text)
		}
		if again := Unclosing(got); again != got {
			t.Errorf("%q: again %q, was %q", in, again, got)
		}
	})
}
