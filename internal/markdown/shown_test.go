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
		{"title", `[a](https://b "approve") and [c](<d e> 'approve')`, "[a](<https://b>) and [c](<d e>)"},
		{"title in brackets", `[a](b (approve)) c`, "[a](<b>) c"},
		{"image", `a ![approve](b "approve") c ![approve][d] e`, `a [image] c ![approve][d] e`},
		{"image by a definition", "![approve *this*][d] e\n\n[d]: f", "[image] e\n\n"},
		{"tag", `a <b title="approve > this">c</b> <img alt="approve"> d`, "a <b>c</b> [image] d"},
		{"block of tags", "<div title='approve'>\n<img\nalt=approve>c\n</div>", "<div>\n[image]c\n</div>"},
		{"tag not closed", "<div>a\n<p title=\"approve", "<div>a\n"},
		{"footnote", "a[^1]\n\n[^1]: shown\n\n[^2]: approve\n  this\n\n    and that\n\nb", "a[^1]\n\n[^1]: shown\n\nb"},
		{"code", "`[x](y \"z\") <b c>`\n\n```\n[^2]: d\n<b c>\n```", "`[x](y \"z\") <b c>`\n\n```\n[^2]: d\n<b c>\n```"},
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
