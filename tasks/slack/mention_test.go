package slack

import "testing"

func TestCutMention(t *testing.T) {
	t.Parallel()
	at := "<@U0ERRAND>"
	for _, tc := range []struct {
		name, text, rest string
		ok               bool
	}{
		{"at the beginning", at + " do it", "do it", true},
		{"with a comma", at + ", do it", "do it", true},
		{"with a colon and a name", "<@U0ERRAND|errand>: do it", "do it", true},
		{"within", "please " + at + " do it", "please do it", true},
		{"at the end", "do it " + at, "do it ", true},
		{"twice", at + " do it\n" + at + " now", "do it\nnow", true},
		{"none", "do it", "do it", false},
		{"of another", "<@U0ERRAND2> do it", "<@U0ERRAND2> do it", false},
		{"of two", at + " <@U0BOB> do it", "<@U0BOB> do it", true},
		{"in code", "`" + at + "` x", "`" + at + "` x", false},
		{"in code and beside it", at + " what is `" + at + "`?", "what is `" + at + "`?", true},
		{"between backticks of two lines", "a ` b\n" + at + " c ` d", "a ` b\nc ` d", true},
		{"in a block", "```\n" + at + " x\n```", "```\n" + at + " x\n```", false},
		{"behind a block", "```\nx\n``` " + at + " y", "```\nx\n``` y", true},
		{"behind what is no block", "``` " + at + " y", "``` y", true},
		{"in a quote", "&gt; " + at + " x", "&gt; " + at + " x", false},
		{"behind a quote", "&gt; " + at + " x\n" + at + " y", "&gt; " + at + " x\ny", true},
		{"behind a sign in a line", "1 &gt; 0 " + at + " y", "1 &gt; 0 y", true},
		{"in a quote to the end", "x\n&gt;&gt;&gt; a\n" + at + " y", "x\n&gt;&gt;&gt; a\n" + at + " y", false},
		{"in a quote within a block", "```\n&gt;&gt;&gt;\n```\n" + at + " y", "```\n&gt;&gt;&gt;\n```\ny", true},
	} {
		rest, ok := cutMention(tc.text, "U0ERRAND")
		equal(t, tc.name, []any{rest, ok}, []any{tc.rest, tc.ok})
	}
	if _, ok := cutMention("<@> x", ""); ok {
		t.Error("no mention arrived")
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" a &lt;b&gt; &amp;amp; c\n":            "a <b> &amp; c",
		"<https://x.org/?a=1&amp;b=2>":          "https://x.org/?a=1&b=2",
		"<https://x.org|the page>":              "the page (https://x.org)",
		"<http://x.org|x.org>":                  "x.org",
		"<https://x.org|https://x.org>":         "https://x.org",
		"<mailto:a@x.org|a@x.org>":              "a@x.org",
		"<mailto:a@x.org|write>":                "write (mailto:a@x.org)",
		"<@U0BOB> and <@U0BOB|bob>":             "@U0BOB and @U0BOB",
		"<#C0OPS|ops> <#C0OPS> <#C0OPS|>":       "#ops #C0OPS #C0OPS",
		"<!here> <!subteam^S1|@ops>":            "@here @ops",
		"<!subteam^S1>":                         "@subteam",
		"<!date^1700000000^{date}|Tuesday>":     "Tuesday",
		"&lt;https://x.org|y&gt;":               "<https://x.org|y>",
		"<|x> <>":                               "<|x> <>",
		"ig\u200bno\u202ere &lt;b&gt;":          "ignore <b>",
		"\u0645\u06cc\u200c\u062e \u2764\ufe0f": "\u0645\u06cc\u200c\u062e \u2764\ufe0f",
	} {
		equal(t, text, decode(text), want)
	}
}
