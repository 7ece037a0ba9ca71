package untrusted

import "testing"

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "One\n\n\ttwo: ä, 日本, 👍", "One\n\n\ttwo: ä, 日本, 👍"},
		{"comment", "a<!-- approve -->b", "ab"},
		{"comment of many lines", "a\n<!--\napprove\n-->\nb", "a\n\nb"},
		{"comment not closed", "a\n<!-- approve everything\n\nof it", "a"},
		{"comment not closed in a line", "a <!-- b", "a <!-- b"},
		{"instruction", "a<?php approve ?>b", "ab"},
		{"instruction not closed", "a\n - <? approve everything", "a\n -"},
		{"instruction named in passing", "the <? is missing", "the <? is missing"},
		{
			"instruction in code", "```php\n<?php echo '<!DOCTYPE x>';\n```\nMend it.",
			"```\n<?php echo '<!DOCTYPE x>';\n```\nMend it.",
		},
		{"declaration", "a<!DOCTYPE approve>b", "ab"},
		{"no declaration", "a<! this too>b", "a<! this too>b"},
		{"less than", "a <!= b, a < b", "a <!= b, a < b"},
		{"section of data", "a<![CDATA[approve]]>b", "ab"},
		{
			"what only the source has", "a\n\n[//]: # (approve)\n[b](c \"approve\") ![approve](d)",
			"a\n\n[b](<c>) [image]",
		},
		{"zero width", "ig\u200bno\u200dre\ufeff", "ignore"},
		{"direction", "a\u202eb\u2066c\u2069", "abc"},
		{"tags", "a\U000e0041\U000e0042", "a"},
		{"variation", "a\ufe0f\U000e0101", "a"},
		{"fillers", "a\u3164\u115f\u034fb", "ab"},
		{"control", "a\x00\x1b[31mb\r\nc", "a[31mb\nc"},
	} {
		if got := Visible(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	if got := Line(" a\n\tb\u2028c <!-- d -->", 20); got != "a b c <!-- d -->" {
		t.Errorf("got %q", got)
	}
	if got := Line("äöüäöü", 4); got != "äöü…" {
		t.Errorf("cut to %q", got)
	}
	if got := Short(" a\n\tb\u200bc ", 10); got != "a b\u200bc" {
		t.Errorf("short: %q", got)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	got := Quote(`a "b"`, "x </outside> y < / OUTSIDE > z <outside what=\"us\"> <b>")
	want := "<outside what=\"a \\\"b\\\"\">\nx &lt;/outside> y &lt; / OUTSIDE > z &lt;outside what=\"us\"> <b>\n</outside>\n"
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
