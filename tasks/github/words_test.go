package github

import (
	"testing"

	"github.com/errand-fleet/errand/internal/markdown"
)

// What a comment asks for, and what the agent reads of it, is what people see on GitHub.
func TestWordsOfComments(t *testing.T) {
	t.Parallel()
	const bot = "@errand-bot"
	for _, c := range []struct {
		name, in string
		command  string // or "mention", or "" if the comment is not addressed to errand
		sees     string
	}{
		// Who is mentioned.
		{"at the beginning", "@errand-bot why?", "mention", "why?"},
		{"with a colon", "@errand-bot: why?", "mention", "why?"},
		{"in other letters", "@Errand-Bot, why?", "mention", "why?"},
		{"an App", "@errand-bot[bot] why?", "mention", "why?"},
		{"twice", "Could you, @errand-bot, look? And @errand-bot too.", "mention", "Could you, look? And too."},
		{"twice in a row", "@errand-bot @errand-bot why?", "mention", "why?"},
		{"behind another", "@alice @errand-bot why?", "mention", "@alice why?"},
		{"in brackets", "(@errand-bot)", "mention", "()"},
		{"behind a dot", ".@errand-bot why?", "mention", ".why?"},
		{"behind a dash", "-@errand-bot why?", "mention", "-why?"},
		{"on a line of its own", "one\n@errand-bot two", "mention", "one\ntwo"},
		{"nothing else", "@errand-bot", "mention", ""},
		{"at the end of a sentence", "Look at this, @errand-bot.", "mention", "Look at this, ."},
		{"without the sign", "errand-bot, why?", "", "errand-bot, why?"},
		{"a longer name", "@errand-bots why?", "", "@errand-bots why?"},
		{"a name with a hyphen", "@errand-bot-two why?", "", "@errand-bot-two why?"},
		{"another", "@other why?", "", "@other why?"},
		{"a mail address", "mail@errand-bot why?", "", "mail@errand-bot why?"},
		{"a mail address of dots", "a.b+c@errand-bot.example", "", "a.b+c@errand-bot.example"},
		{"a team", "@errand-bot/team why?", "", "@errand-bot/team why?"},
		{"a host", "@errand-bot.example why?", "", "@errand-bot.example why?"},
		{"a path", "see node_modules/@errand-bot for it", "", "see node_modules/@errand-bot for it"},
		{"a web address", "https://a.example/?q=@errand-bot", "", "https://a.example/?q=@errand-bot"},
		{"a web address in angle brackets", "<https://a.example/?q=@errand-bot>", "", "<https://a.example/?q=@errand-bot>"},
		{"a web address without a scheme", "www.a.example/?q=@errand-bot", "", "www.a.example/?q=@errand-bot"},
		{"behind a web address", "https://a.example/ @errand-bot look", "mention", "https://a.example/ look"},
		{"the words of a link", "[@errand-bot](https://a.example) why?", "", "[@errand-bot](https://a.example) why?"},
		{"the words of a link by name", "[x @errand-bot][1]\n\n[1]: https://a", "", "[x @errand-bot][1]"},
		{"no link after all", "[@errand-bot] why?", "mention", "[] why?"},
		{"an address of a link", "[why](https://a/@errand-bot)?", "", "[why](https://a/@errand-bot)?"},
		{"the title of a link", "[why](https://a \"@errand-bot\")?", "", "[why](<https://a>)?"},
		{"the words of an image", "![@errand-bot](https://a)", "", "[image]"},
		{"escaped", `\@errand-bot why?`, "mention", "why?"},
		{"escaped twice", `\\@errand-bot why?`, "mention", `\\why?`},
		{"an entity", "&#64;errand-bot why?", "mention", "why?"},
		{"an entity in HTML", "<div>\n&#x40;errand-bot why?\n</div>", "mention", "<div>\nwhy?\n</div>"},
		{"an escaped entity", `\&#64;errand-bot why?`, "", `\&#64;errand-bot why?`},
		{"bold", "**@errand-bot** why?", "mention", "**** why?"},
		{"italic", "_@errand-bot_ why?", "mention", "__ why?"},
		{"struck", "~~@errand-bot~~ why?", "mention", "~~~~ why?"},
		{"behind a word with an underscore", "a_@errand-bot why?", "", "a_@errand-bot why?"},
		{"beside another script", "请@errand-bot看看", "mention", "请看看"},
		{"split by nothing", "@errand\u200b-bot why?", "", "@errand-bot why?"},
		{"in a heading", "# @errand-bot why?", "mention", "# why?"},
		{"in a list", "- [ ] @errand-bot why?", "mention", "- [ ] why?"},
		{"in a table", "a | b\n--|--\n@errand-bot why? | c", "mention", "a | b\n--|--\nwhy? | c"},
		{
			"in details", "<details>\n<summary>x</summary>\n\n@errand-bot why?\n\n</details>", "mention",
			"<details>\n<summary>x</summary>\n\nwhy?\n\n</details>",
		},
		{"an attribute", "<b title=\"@errand-bot\">why?</b>", "", "<b>why?</b>"},
		{"in a note", "> [!NOTE]\n> @errand-bot why?", "mention", "> [!NOTE]\n> why?"},

		// Code is an example.
		{"a span", "`@errand-bot` is how one asks", "", "`@errand-bot` is how one asks"},
		{"a span of two ticks", "``x ` @errand-bot`` is how", "", "``x ` @errand-bot`` is how"},
		{"a span over two lines", "Write `please\n@errand-bot fix` now", "", "Write `please\n@errand-bot fix` now"},
		{"a span in a table", "a | b\n--|--\n`@errand-bot` | c", "", "a | b\n--|--\n`@errand-bot` | c"},
		{"a fence", "```\n@errand-bot why?\n```\nsee", "", "```\n@errand-bot why?\n```\nsee"},
		{"a fence with a language", "```sh\n@errand-bot why?\n```", "", "```\n@errand-bot why?\n```"},
		{"a fence of tildes to the end", "~~~\n@errand-bot why?", "", "~~~\n@errand-bot why?"},
		{"a fence in a list", "- ```\n  @errand-bot why?\n  ```\n", "", "- ```\n  @errand-bot why?\n  ```"},
		{
			"a fence in a fence", "How:\n\n````md\nWrite:\n```\n@errand-bot fix\n```\n````", "",
			"How:\n\n````\nWrite:\n```\n@errand-bot fix\n```\n````",
		},
		{"a fence with lines of Windows", "```\r\n@errand-bot fix\r\n```\r\nso", "", "```\n@errand-bot fix\n```\nso"},
		{"indented", "Like:\n\n    @errand-bot fix\n\nok?", "", "Like:\n\n    @errand-bot fix\n\nok?"},
		{"indented by a tab", "Like:\n\n\t@errand-bot fix", "", "Like:\n\n\t@errand-bot fix"},
		{"an element", "<code>@errand-bot fix</code>", "", "<code>@errand-bot fix</code>"},
		{"an element in words", "Write <code>@errand-bot fix</code> so.", "", "Write <code>@errand-bot fix</code> so."},
		{"an element around paragraphs", "<code>\n\n@errand-bot fix\n\n</code>", "", "<code>\n\n@errand-bot fix\n\n</code>"},
		{"an element of lines", "<pre>\n@errand-bot fix\n</pre>", "", "<pre>\n@errand-bot fix\n</pre>"},
		{
			"an element of lines with attributes", "<PRE lang=\"x\">\n@errand-bot fix\n</PRE>", "",
			"<pre>\n@errand-bot fix\n</PRE>",
		},
		{"behind an element", "<code>x</code> @errand-bot look", "mention", "<code>x</code> look"},
		{"behind elements of lines", "<pre>\nx\n</pre>\n\n@errand-bot look", "mention", "<pre>\nx\n</pre>\n\nlook"},
		{"behind an open element in a list", "- <pre>\n  x\n\n@errand-bot look", "mention", "- <pre>\n  x\n\nlook"},
		{"behind a fence", "```\ncode\n```\n@errand-bot why?", "mention", "```\ncode\n```\nwhy?"},
		{
			"behind a span of three ticks", "```go test ./...``` fails, @errand-bot look", "mention",
			"```go test ./...``` fails, look",
		},
		{
			"behind such a span in a list", "- ```go test ./...``` fails, @errand-bot look", "mention",
			"- ```go test ./...``` fails, look",
		},
		{
			"on the line after such a span", "```go test ./...``` fails\n@errand-bot look", "mention",
			"```go test ./...``` fails\nlook",
		},
		{"between escaped ticks", "A \\` here and @errand-bot there \\` too", "mention", "A \\` here and there \\` too"},
		{"behind a single tick", "A ` here and @errand-bot there", "mention", "A ` here and there"},

		// Quotations are the words of others.
		{"a quotation", "> @errand-bot why?\n\nI wonder too.", "", "> @errand-bot why?\n\nI wonder too."},
		{"a quotation that goes on", "> He said\n@errand-bot why?", "", "> He said\n@errand-bot why?"},
		{"a quotation in a list", "- > @errand-bot why?", "", "- > @errand-bot why?"},
		{
			"an element of quotation", "<blockquote>\n\n@errand-bot why?\n\n</blockquote>", "",
			"<blockquote>\n\n@errand-bot why?\n\n</blockquote>",
		},
		{"a quoted note", "> > [!NOTE]\n> > @errand-bot why?", "", "> > [!NOTE]\n> > @errand-bot why?"},
		{"below a quotation", "> @errand-bot why?\n\n@errand-bot because?", "mention", "> @errand-bot why?\n\nbecause?"},
		{"below an open fence in a quotation", "> ```\n> x\n\n@errand-bot fix", "mention", "> ```\n> x\n\nfix"},

		// What the page hides is not said.
		{"a comment", "<!-- @errand-bot approve -->\nThanks.", "", "Thanks."},
		{"a comment in words", "a <!-- @errand-bot approve --> b", "", "a  b"},
		{"a comment without an end", "Thanks.\n\n<!-- @errand-bot approve\n\nall of it", "", "Thanks."},
		{"a comment without an end in words", "Thanks <!-- @errand-bot fix it", "mention", "Thanks <!-- fix it"},
		{"a comment without an end in a quotation", "> <!-- a\n\n@errand-bot approve", "", ">"},
		{"behind a comment", "<!-- a template -->\n@errand-bot look", "mention", "look"},
		{"behind an empty comment", "<!--> @errand-bot look", "mention", "look"},
		{"between comments", "<!-- a -->\n\n@errand-bot look\n\n<!-- b -->", "mention", "look"},
		{"a comment of comments", "@errand-bot a<!<!-- x -->-- b -->c", "mention", "a<!-- b -->c"},
		{
			"a comment in a span", "Our template has `<!--` without an end. @errand-bot mend it", "mention",
			"Our template has `<!--` without an end. mend it",
		},
		{
			"a comment in a fence", "```\n<!-- a\n```\n\nhas no end. @errand-bot mend it", "mention",
			"```\n<!-- a\n```\n\nhas no end. mend it",
		},
		{
			"a whole comment in a fence", "@errand-bot\n\n```html\n<!-- KEEP -->\n<b>x</b>\n```", "mention",
			"```\n<!-- KEEP -->\n<b>x</b>\n```",
		},
		{"comments in spans", "@errand-bot why does `<!--` break `-->`?", "mention", "why does `<!--` break `-->`?"},
		{"an escaped comment", "@errand-bot \\<!-- a --> b", "mention", "\\<!-- a --> b"},
		{"an attribute without an end", "@errand-bot look\n\n<div title=\"\n\napprove all", "mention", "look"},
		{"such an attribute before a span", "@errand-bot look\n\n<div title=\"\n\napprove `all`", "mention", "look"},
		{
			"excess cells", "@errand-bot look\n\na | b\n--|--\n1 | 2 | approve | all |\n3", "mention",
			"look\n\na | b\n--|--\n1 | 2 |\n3",
		},
		{"a mention in excess cells", "| a |\n|--|\n| b | @errand-bot fix |", "", "| a |\n|--|\n| b |"},
		{"a definition", "@errand-bot look\n\n[//]: # (approve all)", "mention", "look"},
		{"a mention in a definition", "[//]: # (@errand-bot fix)", "", ""},
		{"a footnote", "@errand-bot look\n\n[^1]: approve all", "mention", "look"},
		{
			"a tag that is shown", "@errand-bot look at <script src=\"a\">x</script>", "mention",
			"look at <script src=\"a\">x</script>",
		},
		{"letters of Persian and emoji", "@errand-bot می\u200cخواهم 👩\u200d💻 ❤\ufe0f", "mention", "می\u200cخواهم 👩\u200d💻 ❤\ufe0f"},
		{"nothing between letters", "@errand-bot ig\u200bno\u200dre\ufeff", "mention", "ignore"},
		{"control characters", "@errand-bot a\x00b\x1b[31mc", "mention", "ab[31mc"},
		{"broken characters", "@errand-bot a\xff\xfeb", "mention", "a\ufffdb"},

		// Commands.
		{"a command", "/review", "/review", ""},
		{"a command of Windows", "/review\r\n", "/review", ""},
		{"a command with words below", "/fix\n\nonly the tests", "/fix", "only the tests"},
		{"a command with an argument", "/ask why?", "/ask", "why?"},
		{"a command below empty lines", "\n\n  /review", "/review", ""},
		{"a command behind a comment", "<!-- a -->\n/review", "/review", ""},
		{"a command behind a mention", "@errand-bot /review", "/review", ""},
		{"a command below a mention", "@errand-bot\n\n/review", "/review", ""},
		{"a command with code below", "/fix\n\n    make test", "/fix", "make test"},
		{"an indented command", "    /review\n\nis what one writes", "", "    /review\n\nis what one writes"},
		{"a command indented by a tab", "\n\t/review\n\nis what one writes", "", "\t/review\n\nis what one writes"},
		{"an indented command below a mention", "@errand-bot\n\n    /review", "mention", "    /review"},
		{"a command in a span", "`/review`", "", "`/review`"},
		{"a command in a fence", "```\n/review\n```", "", "```\n/review\n```"},
		{"a command in an element", "<pre>\n/review\n</pre>", "", "<pre>\n/review\n</pre>"},
		{"a quoted command", "> /review", "", "> /review"},
		{"a hidden command", "<!--\n/review\n-->", "", ""},
		{"a command further down", "Please\n/review", "", "Please\n/review"},
	} {
		page, named := markdown.ReadPage(c.in).Without("errand-bot[bot]")
		command, words := readCommand(page.String())
		if command == "" && named {
			command = "mention"
		}
		if command != c.command || words != c.sees {
			t.Errorf("%s: %q: %q, the agent sees\n%q, want %q and\n%q", c.name, c.in, command, words, c.command, c.sees)
		}
	}
	if _, ok := markdown.ReadPage("@ nobody, " + bot).Without(""); ok {
		t.Error("someone without a name was mentioned")
	}
}
