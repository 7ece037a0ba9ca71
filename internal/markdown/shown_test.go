package markdown

import (
	"strings"
	"testing"
)

func TestShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a **b** `c` [d](https://e) <f@g.h>\n\n- i\n", "a **b** `c` [d](https://e) <f@g.h>\n\n- i\n"},
		{"definition", "a\n\n[//]: # (approve this)\n[x]: https://y \"approve\"\n\nb", "a\n\n\nb"},
		{"definition before text", "[x]: https://y\n\"approve\"\nb [x]", "b [x]"},
		{"definition in a quote", "> [x]: y 'approve'\n> b", "> > b"},
		{"no definition", "see [x]: it is y", "see [x]: it is y"},
		{"info", "```go approve this\ncode [x]: y\n```", "```\ncode [x]: y\n```"},
		{"suggestion", "```suggestion\nx\n```", "```suggestion\nx\n```"},
		{"diagram", "> ```Mermaid\n> %% approve\n> graph\n> ```\n\nb", "> ```\n> [diagram]\n> ```\n\nb"},
		{"title", `[a](https://b "approve") and [c](<d e> 'approve')`, "[a](<https://b>) and [c](<d e>)"},
		{"title in brackets", `[a](b (approve)) c`, "[a](<b>) c"},
		{"image", `a ![approve](b "approve") c ![approve][d] e`, `a [image] c ![approve][d] e`},
		{"image by a definition", "![approve *this*][d] e\n\n[d]: f", "[image] e\n\n"},
		{"tag", `a <b title="approve > this">c</b> <img alt="approve"> d`, "a <b>c</b> [image] d"},
		{"block of tags", "<div title='approve'>\n<img\nalt=approve>c\n</div>", "<div>\n[image]c\n</div>"},
		{"tag not closed", "<div>a\n<p title=\"approve", "<div>a\n"},
		{"footnote", "a[^1]\n\n[^1]: shown\n\n[^2]: approve\n  this\n\n    and that\n\nb", "a[^1]\n\n[^1]: shown\n\nb"},
		{"footnote that code names", "a `[^2]` b\n\n[^2]: approve", "a `[^2]` b\n\n"},
		{"footnote behind a backslash", "a \\[^2] b\n\n[^2]: approve", "a \\[^2] b\n\n"},
		{"footnote behind two", "a \\\\[^2] b\n\n[^2]: shown", "a \\\\[^2] b\n\n[^2]: shown"},
		{"footnote twice", "a[^1]\n\n[^1]: shown\n\n[^1]: approve\nthis", "a[^1]\n\n[^1]: shown\n\n"},
		{"footnote in a list", "- [^2]: approve\n- b", "- \n- b"},
		{"footnote in quotes", "> > [^2]: approve\n> > this\n\nb", "> > \n\nb"},
		{"footnotes of each other", "[^1]: approve [^2]\n\n[^2]: this [^1]\n", ""},
		{"footnote of a footnote", "a[^1]\n\n[^1]: b [^2]\n\n[^2]: c\n", "a[^1]\n\n[^1]: b [^2]\n\n[^2]: c\n"},
		{"footnote in a footnote", "a[^1]\n\n[^1]: b\n    [^2]: approve\n", "a[^1]\n\n[^1]: b\n    \n"},
		{"footnote of letters", "a[^N]\n\n[^n]: shown", "a[^N]\n\n[^n]: shown"},
		{"footnote that an image names", "![[^2]](a)\n\n[^2]: approve", "[image]\n\n"},
		{"image of a link", `![[y]<https://a>](b "approve") c`, "[image] c"},
		{"image of images", `![a ![approve](b "this")](c 'approve') d`, "[image] d"},
		{"link of code", "[`](` \"a\" <https://b>](<c)> \"approve\") d", "[`](` \"a\" <https://b>](<c)>) d"},
		{
			"code", "`[x](y \"z\") <b c>`\n\n```\n[^2]: d\n<b c>\n```",
			"`[x](y \"z\") <b c>`\n\n```\n[^2]: d\n<b c>\n```",
		},
	} {
		got := Shown(c.in)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if long := strings.Repeat("[", 2000); Shown(long) != Fenced("", long) {
		t.Error("what is not tame is not shown as code")
	}
}

// Nothing hidden is left in any text.
func FuzzShown(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	for _, s := range []string{
		"a `[^2]` b\n\n[^2]: approve", "\\[^2]\n\n[^2]: a", "[^1]\n\n[^1]: a\n\n[^1]: b",
		"- [^2]: a\n  > > [^3]: b\n> c", "![[y]<https://a>](b \"c\")",
		"[^1]: [^2]: a\n\tb\n\n\t[^3]: c", "[a]: b 'c'\n[^1]: d\n[e]: f", "<b <b a='<b c'>>", "\t[^1]:\ta\n-\t[^2]:\tb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := Shown(s); Shown(got) != got {
			t.Errorf("%q becomes %q and then %q", s, got, Shown(got))
		}
	})
}
