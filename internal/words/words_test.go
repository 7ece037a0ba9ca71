package words

import (
	"strings"
	"testing"
)

// What a message asks for, and what the agent reads of it, is what people see.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		github, slack string // the same in Markdown and in Slack's notation; empty if a notation has no such thing
		mentions      string // whom its author mentions: us, or another
		command       string // a first word with a slash
		sees          string // the rest, where Slack's ID of the bot is written as its login
	}{
		// Who is mentioned.
		{"at the beginning", "@errand-bot why?", "<@U0ERRAND> why?", "us", "", "why?"},
		{"with a colon", "@errand-bot: why?", "<@U0ERRAND|errand>: why?", "us", "", "why?"},
		{"in other letters", "@Errand-Bot, why?", "", "us", "", "why?"},
		{"an App", "@errand-bot[bot] why?", "", "us", "", "why?"},
		{
			"twice", "Could you, @errand-bot, look? And @errand-bot too.",
			"Could you, <@U0ERRAND>, look? And <@U0ERRAND> too.", "us us", "",
			"Could you, look? And too.",
		},
		{"twice in a row", "@errand-bot @errand-bot why?", "<@U0ERRAND> <@U0ERRAND> why?", "us us", "", "why?"},
		{"behind another", "@alice @errand-bot why?", "", "us another", "", "@alice why?"},
		{"in brackets", "(@errand-bot)", "", "us", "", "()"},
		{"behind a dot", ".@errand-bot why?", "", "us", "", ".why?"},
		{"behind a dash", "-@errand-bot why?", "", "us", "", "-why?"},
		{"on a line of its own", "one\n@errand-bot two", "one\n<@U0ERRAND> two", "us", "", "one\ntwo"},
		{"nothing else", "@errand-bot", "<@U0ERRAND>", "us", "", ""},
		{
			"at the end of a sentence", "Look at this, @errand-bot.", "Look at this, <@U0ERRAND>.", "us", "",
			"Look at this, .",
		},
		{"without the sign", "errand-bot, why?", "", "", "", "errand-bot, why?"},
		{"a longer name", "@errand-bots why?", "", "another", "", "@errand-bots why?"},
		{"a name with a hyphen", "@errand-bot-two why?", "", "another", "", "@errand-bot-two why?"},
		{"another", "@other why?", "", "another", "", "@other why?"},
		{"a mail address", "mail@errand-bot why?", "", "", "", "mail@errand-bot why?"},
		{"a mail address of dots", "a.b+c@errand-bot.example", "", "", "", "a.b+c@errand-bot.example"},
		{"a team", "@errand-bot/team why?", "", "", "", "@errand-bot/team why?"},
		{"a host", "@errand-bot.example why?", "", "", "", "@errand-bot.example why?"},
		{"a path", "see node_modules/@errand-bot for it", "", "", "", "see node_modules/@errand-bot for it"},
		{"a web address", "https://a.example/?q=@errand-bot", "", "", "", "https://a.example/?q=@errand-bot"},
		{
			"a web address in angle brackets", "<https://a.example/?q=@errand-bot>", "", "", "",
			"<https://a.example/?q=@errand-bot>",
		},
		{"a web address without a scheme", "www.a.example/?q=@errand-bot", "", "", "", "www.a.example/?q=@errand-bot"},
		{"behind a web address", "https://a.example/ @errand-bot look", "", "us", "", "https://a.example/ look"},
		{
			"the words of a link", "[@errand-bot](https://a.example) why?", "", "", "",
			"[@errand-bot](https://a.example) why?",
		},
		{"the words of a link by name", "[x @errand-bot][1]\n\n[1]: https://a", "", "", "", "[x @errand-bot][1]"},
		{"no link after all", "[@errand-bot] why?", "", "us", "", "[] why?"},
		{"an address of a link", "[why](https://a/@errand-bot)?", "", "", "", "[why](https://a/@errand-bot)?"},
		{"the title of a link", `[why](https://a "@errand-bot")?`, "", "", "", "[why](<https://a>)?"},
		{"the words of an image", "![@errand-bot](https://a)", "", "", "", "[image]"},
		{"escaped", `\@errand-bot why?`, "", "us", "", "why?"},
		{"escaped twice", `\\@errand-bot why?`, "", "us", "", `\\why?`},
		{"an entity", "&#64;errand-bot why?", "", "us", "", "why?"},
		{"an entity in HTML", "<div>\n&#x40;errand-bot why?\n</div>", "", "us", "", "<div>\nwhy?\n</div>"},
		{"an escaped entity", `\&#64;errand-bot why?`, "", "", "", `\&#64;errand-bot why?`},
		{"bold", "**@errand-bot** why?", "", "us", "", "**** why?"},
		{"italic", "_@errand-bot_ why?", "", "us", "", "__ why?"},
		{"struck", "~~@errand-bot~~ why?", "", "us", "", "~~~~ why?"},
		{"behind a word with an underscore", "a_@errand-bot why?", "", "", "", "a_@errand-bot why?"},
		{"beside another script", "请@errand-bot看看", "", "us", "", "请看看"},
		{"split by nothing", "@errand\u200b-bot why?", "", "another", "", "@errand-bot why?"},
		{"in a heading", "# @errand-bot why?", "", "us", "", "# why?"},
		{"in a list", "- [ ] @errand-bot why?", "", "us", "", "- [ ] why?"},
		{"in a table", "a | b\n--|--\n@errand-bot why? | c", "", "us", "", "a | b\n--|--\nwhy? | c"},
		{
			"in details", "<details>\n<summary>x</summary>\n\n@errand-bot why?\n\n</details>", "", "us", "",
			"<details>\n<summary>x</summary>\n\nwhy?\n\n</details>",
		},
		{"an attribute", `<b title="@errand-bot">why?</b>`, "", "", "", "<b>why?</b>"},
		{"in a note", "> [!NOTE]\n> @errand-bot why?", "", "us", "", "> [!NOTE]\n> why?"},

		// Code is an example.
		{
			"a span", "`@errand-bot` is how one asks", "`<@U0ERRAND>` is how one asks", "", "",
			"`@errand-bot` is how one asks",
		},
		{"a span of two ticks", "``x ` @errand-bot`` is how", "", "", "", "``x ` @errand-bot`` is how"},
		{
			"a span over two lines", "Write `please\n@errand-bot fix` now", "", "", "",
			"Write `please\n@errand-bot fix` now",
		},
		{"a span in a table", "a | b\n--|--\n`@errand-bot` | c", "", "", "", "a | b\n--|--\n`@errand-bot` | c"},
		{
			"a fence", "```\n@errand-bot why?\n```\nsee", "```\n<@U0ERRAND> why?\n```\nsee", "", "",
			"```\n@errand-bot why?\n```\nsee",
		},
		{"a fence with a language", "```sh\n@errand-bot why?\n```", "", "", "", "```\n@errand-bot why?\n```"},
		{"a fence of tildes to the end", "~~~\n@errand-bot why?", "", "", "", "~~~\n@errand-bot why?"},
		{"a fence in a list", "- ```\n  @errand-bot why?\n  ```\n", "", "", "", "- ```\n  @errand-bot why?\n  ```"},
		{
			"a fence in a fence", "How:\n\n````md\nWrite:\n```\n@errand-bot fix\n```\n````", "", "", "",
			"How:\n\n````\nWrite:\n```\n@errand-bot fix\n```\n````",
		},
		{
			"a fence with lines of Windows", "```\r\n@errand-bot fix\r\n```\r\nso", "", "", "",
			"```\n@errand-bot fix\n```\nso",
		},
		{"indented", "Like:\n\n    @errand-bot fix\n\nok?", "", "", "", "Like:\n\n    @errand-bot fix\n\nok?"},
		{"indented by a tab", "Like:\n\n\t@errand-bot fix", "", "", "", "Like:\n\n\t@errand-bot fix"},
		{"an element", "<code>@errand-bot fix</code>", "", "", "", "<code>@errand-bot fix</code>"},
		{
			"an element in words", "Write <code>@errand-bot fix</code> so.", "", "", "",
			"Write <code>@errand-bot fix</code> so.",
		},
		{
			"an element around paragraphs", "<code>\n\n@errand-bot fix\n\n</code>", "", "", "",
			"<code>\n\n@errand-bot fix\n\n</code>",
		},
		{"an element of lines", "<pre>\n@errand-bot fix\n</pre>", "", "", "", "<pre>\n@errand-bot fix\n</pre>"},
		{
			"an element of lines with attributes", "<PRE lang=\"x\">\n@errand-bot fix\n</PRE>", "", "", "",
			"<pre>\n@errand-bot fix\n</PRE>",
		},
		{"behind an element", "<code>x</code> @errand-bot look", "", "us", "", "<code>x</code> look"},
		{"behind elements of lines", "<pre>\nx\n</pre>\n\n@errand-bot look", "", "us", "", "<pre>\nx\n</pre>\n\nlook"},
		{"behind an open element in a list", "- <pre>\n  x\n\n@errand-bot look", "", "us", "", "- <pre>\n  x\n\nlook"},
		{
			"behind a fence", "```\ncode\n```\n@errand-bot why?", "```\ncode\n```\n<@U0ERRAND> why?", "us", "",
			"```\ncode\n```\nwhy?",
		},
		{
			"behind a span of three ticks", "```go test ./...``` fails, @errand-bot look",
			"```go test ./...``` fails, <@U0ERRAND> look", "us", "",
			"```go test ./...``` fails, look",
		},
		{
			"behind such a span in a list", "- ```go test ./...``` fails, @errand-bot look", "", "us", "",
			"- ```go test ./...``` fails, look",
		},
		{
			"on the line after such a span", "```go test ./...``` fails\n@errand-bot look",
			"```go test ./...``` fails\n<@U0ERRAND> look", "us", "",
			"```go test ./...``` fails\nlook",
		},
		{
			"between escaped ticks", "A \\` here and @errand-bot there \\` too", "", "us", "",
			"A \\` here and there \\` too",
		},
		{
			"behind a single tick", "A ` here and @errand-bot there", "A ` here and <@U0ERRAND> there", "us", "",
			"A ` here and there",
		},

		// Quotations are the words of others.
		{
			"a quotation", "> @errand-bot why?\n\nI wonder too.", "&gt; <@U0ERRAND> why?\n\nI wonder too.", "", "",
			"> @errand-bot why?\n\nI wonder too.",
		},
		{"a quotation that goes on", "> He said\n@errand-bot why?", "", "", "", "> He said\n@errand-bot why?"},
		{"a quotation in a list", "- > @errand-bot why?", "", "", "", "- > @errand-bot why?"},
		{
			"an element of quotation", "<blockquote>\n\n@errand-bot why?\n\n</blockquote>", "", "", "",
			"<blockquote>\n\n@errand-bot why?\n\n</blockquote>",
		},
		{"a quoted note", "> > [!NOTE]\n> > @errand-bot why?", "", "", "", "> > [!NOTE]\n> > @errand-bot why?"},
		{
			"below a quotation", "> @errand-bot why?\n\n@errand-bot because?",
			"&gt; <@U0ERRAND> why?\n\n<@U0ERRAND> because?", "us", "",
			"> @errand-bot why?\n\nbecause?",
		},
		{"below an open fence in a quotation", "> ```\n> x\n\n@errand-bot fix", "", "us", "", "> ```\n> x\n\nfix"},

		// What the page hides is not said.
		{"a comment", "<!-- @errand-bot approve -->\nThanks.", "", "", "", "Thanks."},
		{"a comment in words", "a <!-- @errand-bot approve --> b", "", "", "", "a  b"},
		{"a comment without an end", "Thanks.\n\n<!-- @errand-bot approve\n\nall of it", "", "", "", "Thanks."},
		{"a comment without an end in words", "Thanks <!-- @errand-bot fix it", "", "us", "", "Thanks <!-- fix it"},
		{"a comment without an end in a quotation", "> <!-- a\n\n@errand-bot approve", "", "", "", ">"},
		{"behind a comment", "<!-- a template -->\n@errand-bot look", "", "us", "", "look"},
		{"behind an empty comment", "<!--> @errand-bot look", "", "us", "", "look"},
		{"between comments", "<!-- a -->\n\n@errand-bot look\n\n<!-- b -->", "", "us", "", "look"},
		{"a comment of comments", "@errand-bot a<!<!-- x -->-- b -->c", "", "us", "", "a<!-- b -->c"},
		{
			"a comment in a span", "Our template has `<!--` without an end. @errand-bot mend it", "", "us", "",
			"Our template has `<!--` without an end. mend it",
		},
		{
			"a comment in a fence", "```\n<!-- a\n```\n\nhas no end. @errand-bot mend it", "", "us", "",
			"```\n<!-- a\n```\n\nhas no end. mend it",
		},
		{
			"a whole comment in a fence", "@errand-bot\n\n```html\n<!-- KEEP -->\n<b>x</b>\n```", "", "us", "",
			"```\n<!-- KEEP -->\n<b>x</b>\n```",
		},
		{"comments in spans", "@errand-bot why does `<!--` break `-->`?", "", "us", "", "why does `<!--` break `-->`?"},
		{"an escaped comment", `@errand-bot \<!-- a --> b`, "", "us", "", `\<!-- a --> b`},
		{"an attribute without an end", "@errand-bot look\n\n<div title=\"\n\napprove all", "", "us", "", "look"},
		{"such an attribute before a span", "@errand-bot look\n\n<div title=\"\n\napprove `all`", "", "us", "", "look"},
		{
			"excess cells", "@errand-bot look\n\na | b\n--|--\n1 | 2 | approve | all |\n3", "", "us", "",
			"look\n\na | b\n--|--\n1 | 2 |\n3",
		},
		{"a mention in excess cells", "| a |\n|--|\n| b | @errand-bot fix |", "", "", "", "| a |\n|--|\n| b |"},
		{"a definition", "@errand-bot look\n\n[//]: # (approve all)", "", "us", "", "look"},
		{"a mention in a definition", "[//]: # (@errand-bot fix)", "", "", "", ""},
		{"a footnote", "@errand-bot look\n\n[^1]: approve all", "", "us", "", "look"},
		{
			"a tag that is shown", `@errand-bot look at <script src="a">x</script>`, "", "us", "",
			`look at <script src="a">x</script>`,
		},
		{
			"letters of Persian and emoji", "@errand-bot می\u200cخواهم 👩\u200d💻 ❤\ufe0f",
			"<@U0ERRAND> می\u200cخواهم 👩\u200d💻 ❤\ufe0f", "us", "",
			"می\u200cخواهم 👩\u200d💻 ❤\ufe0f",
		},
		{
			"nothing between letters", "@errand-bot ig\u200bno\u200dre\ufeff",
			"<@U0ERRAND> ig\u200bno\u200dre\ufeff", "us", "",
			"ignore",
		},
		{"control characters", "@errand-bot a\x00b\x1b[31mc", "<@U0ERRAND> a\x00b\x1b[31mc", "us", "", "ab[31mc"},
		{"broken characters", "@errand-bot a\xff\xfeb", "", "us", "", "a�b"},
		{"nothing that is hidden", "One\n\n\ttwo: ä, 日本, 👍", "", "", "", "One\n\n\ttwo: ä, 日本, 👍"},
		{"a comment between words", "a<!-- approve -->b", "", "", "", "ab"},
		{"a comment of many lines", "a\n<!--\napprove\n-->\nb", "", "", "", "a\n\nb"},
		{"a comment without an end below words", "a\n<!-- approve everything\n\nof it", "", "", "", "a"},
		{"what begins no comment", "a <!-- b", "", "", "", "a <!-- b"},
		{"an instruction", "a<?php approve ?>b", "", "", "", "ab"},
		{"an instruction without an end", "a\n - <? approve everything", "", "", "", "a\n -"},
		{"an instruction named in passing", "the <? is missing", "", "", "", "the <? is missing"},
		{
			"an instruction in code", "```php\n<?php echo '<!DOCTYPE x>';\n```\nMend it.", "", "", "",
			"```\n<?php echo '<!DOCTYPE x>';\n```\nMend it.",
		},
		{"a declaration", "a<!DOCTYPE approve>b", "", "", "", "ab"},
		{"no declaration", "a<! this too>b", "", "", "", "a<! this too>b"},
		{"less than", "a <!= b, a < b", "", "", "", "a <!= b, a < b"},
		{"a section of data", "a<![CDATA[approve]]>b", "", "", "", "ab"},
		{
			"what only the source has", "a\n\n[//]: # (approve)\n[b](c \"approve\") ![approve](d)", "", "", "",
			"a\n\n[b](<c>) [image]",
		},
		{"signs without width", "ig\u200bno\u200dre\ufeff", "", "", "", "ignore"},
		{"signs of direction", "a\u202eb\u2066c\u2069", "", "", "", "abc"},
		{"tags of Unicode", "a\U000e0041\U000e0042", "", "", "", "a"},
		{"variation selectors", "a\ufe0f\U000e0101", "", "", "", "a"},
		{"fillers", "a\u3164\u115f\u034fb", "", "", "", "ab"},
		{"control characters and lines of Windows", "a\x00\x1b[31mb\r\nc", "", "", "", "a[31mb\nc"},

		// Commands.
		{"a command", "/review", "/review", "", "/review", ""},
		{"a command of Windows", "/review\r\n", "", "", "/review", ""},
		{
			"a command with words below", "/fix\n\nonly the tests", "/fix\n\nonly the tests",
			"", "/fix", "only the tests",
		},
		{"a command with an argument", "/ask why?", "/ask why?", "", "/ask", "why?"},
		{"a command below empty lines", "\n\n  /review", "", "", "/review", ""},
		{"a command behind a comment", "<!-- a -->\n/review", "", "", "/review", ""},
		{"a command behind a mention", "@errand-bot /review", "<@U0ERRAND> /review", "us", "/review", ""},
		{"a command below a mention", "@errand-bot\n\n/review", "<@U0ERRAND>\n\n/review", "us", "/review", ""},
		{"a command with code below", "/fix\n\n    make test", "", "", "/fix", "make test"},
		{"an indented command", "    /review\n\nis what one writes", "", "", "", "    /review\n\nis what one writes"},
		{
			"a command indented by a tab", "\n\t/review\n\nis what one writes", "", "", "",
			"\t/review\n\nis what one writes",
		},
		{"an indented command below a mention", "@errand-bot\n\n    /review", "", "us", "", "    /review"},
		{"a command in a span", "`/review`", "`/review`", "", "", "`/review`"},
		{"a command in a fence", "```\n/review\n```", "```\n/review\n```", "", "", "```\n/review\n```"},
		{"a command in an element", "<pre>\n/review\n</pre>", "", "", "", "<pre>\n/review\n</pre>"},
		{"a quoted command", "> /review", "&gt; /review", "", "", "> /review"},
		{"a hidden command", "<!--\n/review\n-->", "", "", "", ""},
		{"a command further down", "Please\n/review", "Please\n/review", "", "", "Please\n/review"},

		// What only one of the notations has, or both write in their own ways.
		{
			"beside code", "@errand-bot what is `@errand-bot`?", "<@U0ERRAND> what is `<@U0ERRAND>`?",
			"us", "", "what is `@errand-bot`?",
		},
		{"behind a sign in a line", "1 > 0 @errand-bot y", "1 &gt; 0 <@U0ERRAND> y", "us", "", "1 > 0 y"},
		{"between ticks of two lines", "", "a ` b\n<@U0ERRAND> c ` d", "us", "", "a ` b\nc ` d"},
		{"between a tick and a block", "", "a ` b <@U0ERRAND> ```c```", "us", "", "a ` b ```c```"},
		{"in a span before a block", "", "`<@U0ERRAND> a````b```", "", "", "`@errand-bot a````b```"},
		{"in a span before ticks", "", "`<@U0ERRAND>```", "", "", "`@errand-bot```"},
		{"another in a span before ticks", "", "`<@U0BOB>```", "", "", "`@U0BOB```"},
		{"behind what is no block", "", "``` <@U0ERRAND> y", "us", "", "``` y"},
		{"in a quotation to the end", "", "x\n&gt;&gt;&gt; a\n<@U0ERRAND> y", "", "", "x\n>>> a\n@errand-bot y"},
		{"below such a sign in a block", "", "```\n&gt;&gt;&gt;\n```\n<@U0ERRAND> y", "us", "", "```\n>>>\n```\ny"},
		{"beside a block in a quotation", "", "&gt; ```a\nb``` <@U0ERRAND> y", "", "", "> ```a\nb``` @errand-bot y"},
		{"another user", "", "<@U0ERRAND2> do it", "another", "", "@errand-bot2 do it"},
		{"beside another user", "", "<@U0ERRAND> <@U0BOB> do it", "us another", "", "@U0BOB do it"},
		{"others in code and a quotation", "", "`<@U0BOB>` and\n\n&gt; <!here>", "", "", "`@U0BOB` and\n\n> @here"},
		{
			"groups", "", "<!here> <!channel> <!subteam^S1|@ops> <!subteam^S1>",
			"another another another another", "", "@here @channel @ops @subteam",
		},
		{
			"users with and without their names", "", "<@U0BOB> and <@U0BOB|bob>",
			"another another", "", "@U0BOB and @U0BOB",
		},
		{"channels", "", "<#C0OPS|ops> <#C0OPS> <#C0OPS|>", "", "", "#ops #C0OPS #C0OPS"},
		{"a date", "", "<!date^1700000000^{date}|Tuesday>", "", "", "Tuesday"},
		{"escaped signs", "", " a &lt;b&gt; &amp;amp; c\n", "", "", "a <b> &amp; c"},
		{"an address", "", "<https://x.org/?a=1&amp;b=2>", "", "", "https://x.org/?a=1&b=2"},
		{"an address with words", "", "<https://x.org|the page>", "", "", "the page (https://x.org)"},
		{"a typed address", "", "<http://x.org|x.org> <https://x.org|https://x.org>", "", "", "x.org https://x.org"},
		{
			"a typed mail address", "", "<mailto:a@x.org|a@x.org> <mailto:a@x.org|write>",
			"", "", "a@x.org write (mailto:a@x.org)",
		},
		{"what looks like an address", "", "&lt;https://x.org|y&gt; <|x> <> <", "", "", "<https://x.org|y> <|x> <> <"},
	} {
		if c.github != "" {
			check(t, c.name, Markdown(c.github, "errand-bot[bot]"), c.mentions, c.command, c.sees)
		}
		if c.slack != "" {
			check(t, c.name+" in Slack", Slack(c.slack, "U0ERRAND"), c.mentions, c.command, c.sees)
		}
	}
}

// check compares what was understood of a message with what it says.
func check(t *testing.T, name string, w Words, mentions, command, sees string) {
	t.Helper()
	rest := w.Text
	word, behind, below := w.First()
	if strings.HasPrefix(word, "/") {
		rest = strings.TrimSpace(behind + "\n" + below)
	} else {
		word = ""
	}
	who := strings.TrimSpace(strings.Repeat("us ", w.Ours) + strings.Repeat("another ", w.Others))
	if rest = strings.ReplaceAll(rest, "@U0ERRAND", "@errand-bot"); who != mentions || word != command || rest != sees {
		t.Errorf("%s mentions %q, is the command %q, and the agent sees\n%q, want %q, %q and\n%q",
			name, who, word, rest, mentions, command, sees)
	}
}

// The words with the mentions are for readers. Nobody is mentioned if errand's name is not known.
func TestAllWords(t *testing.T) {
	t.Parallel()
	for text, w := range map[string]Words{
		"@errand-bot: why?": Markdown("@errand-bot: why?<!-- x -->", "errand-bot"),
		"@U0ERRAND: why?":   Slack("<@U0ERRAND>: why?", "U0ERRAND"),
		"@ nobody":          Markdown("@ nobody", ""),
		"@ no user":         Slack("<@> no user", ""),
	} {
		if want := strings.Count(text, ":"); w.All != text || w.Ours != want {
			t.Errorf("%q: %+v", text, w)
		}
	}
}
