package markdown

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	a, b, c := strings.Repeat("a", 199), strings.Repeat("b", 199), strings.Repeat("c", 99)
	code := func(lead string, n int) string { return strings.Repeat(lead+"code line\n", n) }
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"blank", "\n \n", nil},
		{"fits", a + "\n\n" + c, []string{a + "\n\n" + c}},
		{"exactly", strings.Repeat("x", 300), []string{strings.Repeat("x", 300)}},
		{"between paragraphs", a + "\n\n" + c + "\n" + b, []string{a, c + "\n" + b}},
		{"between lines, where a paragraph leaves too little", c + "\n\n" + c + "\n" + b, []string{c + "\n\n" + c, b}},
		{
			"after a space", strings.Repeat("word ", 100),
			[]string{strings.Repeat("word ", 60), strings.Repeat("word ", 40)},
		},
		{
			"after a space before the limit", strings.Repeat("words, ", 60),
			[]string{strings.Repeat("words, ", 42), strings.Repeat("words, ", 18)},
		},
		{"hard", strings.Repeat("ä", 650), []string{
			strings.Repeat("ä", 300), strings.Repeat("ä", 300), strings.Repeat("ä", 50),
		}},
		{
			"in a block", "intro\n\n```go\n" + code("", 40) + "```\nend",
			[]string{"intro\n\n```go\n" + code("", 28) + "```", "```go\n" + code("", 12) + "```\nend"},
		},
		{
			"in a block of a list", "- x\n  ~~~~sh\n" + code("  ", 40) + "  ~~~~\nend",
			[]string{"- x\n  ~~~~sh\n" + code("  ", 23) + "  ~~~~", "- ~~~~sh\n" + code("  ", 17) + "  ~~~~\nend"},
		},
		{
			"in a block of a list in a list", "1) x\n   - ```sh\n" + code("     ", 25) + "     ```\nend",
			[]string{
				"1) x\n   - ```sh\n" + code("     ", 18) + "     ```", "1) - ```sh\n" + code("     ", 7) +
					"     ```\nend",
			},
		},
		{
			"in a block of a quote", "> ```go\n" + code("> ", 30) + "> ```\nend",
			[]string{"> ```go\n" + code("> ", 23) + "> ```", "> ```go\n" + code("> ", 7) + "> ```\nend"},
		},
		{
			"what is deep in a list", "10. x\n\n    " + a + "\n\n    " + b + "\n\n    end",
			[]string{"10. x\n\n    " + a, "10.\n    " + b + "\n\n    end"},
		},
		{
			"before a block", a + "\n" + c[:90] + "\n```go\n" + code("", 3) + "```",
			[]string{a + "\n" + c[:90], "```go\n" + code("", 3) + "```"},
		},
		{"a long line in a block", "```\n" + strings.Repeat("x", 400) + "\n```", []string{
			"```\n" + strings.Repeat("x", 292) + "\n```", "```\n" + strings.Repeat("x", 108) + "\n```",
		}},
		{"no block", "```x``` y", []string{"```x``` y"}},
		{"no end", "```\n" + code("", 20) + "``` ```\n" + code("", 20) + "```", []string{
			"```\n" + code("", 20) + "``` ```\n" + code("", 8) + "```", "```\n" + code("", 12) + "```",
		}},
		{"a block that shows one", "````\n```\n" + code("", 40) + "````", []string{
			"````\n```\n" + code("", 28) + "````", "````\n" + code("", 12) + "````",
		}},
	} {
		if diff := cmp.Diff(tc.want, Split(tc.text, MinSplit, utf8.RuneCountInString)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// GitHub refuses text that is too long, so every part must fit.
func TestPartsFit(t *testing.T) {
	t.Parallel()
	ticks := strings.Repeat("`", 250)
	text := ticks + "\n" + strings.Repeat("code\n", 100) + ticks
	parts := Parts(text, MinSplit, Bytes)
	for _, p := range parts {
		if len(p) > MinSplit || Neutral(p) != p {
			t.Errorf("%d bytes: %q", len(p), p)
		}
	}
	if n := strings.Count(strings.Join(parts, ""), "code"); n < 95 {
		t.Errorf("%d lines are left", n)
	}
}

// seeds are texts that parsers have read, or could read, in two ways.
var seeds = []string{
	"", "```\nx\n``` ```\n@a ![b](c) <!--\n```\n@a", "~~~\nx\n~~~ ~~~\n@a\n~~~\n@a", "- ```\n\tx\n  ```\n@a",
	">\t```\n> @a\n```\n@a",
	"> - 1. ```\n>      @a\n@a", "[a]: <b> \"@c\"\n[a]", "```\r@a\r\n```\r@b", "```\u2028```\n@a",
	"```\n```\f\n@a\n```\n@b", "a\x00@b", "<!-- @a", "<!-- a -->@b",
	"&#64;a &commat;b", "`@a` ``@b` @c", "a | `b\n-|-\nc` | `@d", "[^1]: `\n\n    ```\n@a `", "$`@a`$ $$\n`@b`\n$$",
	"http://a/` @b `", "<a title=\"`\"> @b `</a>",
	"<pre>\n```\n</pre>\n@a", "!![a](b)", "![a][b]\n\n[b]: c", strings.Repeat("`", 60) + "@a" + strings.Repeat("`", 60),
	strings.Repeat("`", 350) + "\n@a", "- ~~~&#64;a\n- \n\t````>x\n    @a\n",
	"10. x\n\n    ```\n    " + strings.Repeat("@a ", 200) + "\n    ```", strings.Repeat("> ", 70) + "@a",
	strings.Repeat("[", 1001), "\\<b> \\\\<b>", "<https://a/`@b`>",
}

// The result is neutral to a parser with HTML, closes its blocks of code, and is not changed by Neutral again.
func FuzzNeutral(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Neutral(s)
		check(t, s, got)
		check(t, s, NeutralLine(s))
		if again := Neutral(got); again != got {
			t.Errorf("%q becomes %q and then %q", s, got, again)
		}
		const below = "below"
		lines := Lines(got + "\n\n" + below)
		if last := lines[len(lines)-1]; last.Text != below || last.Kind != Text {
			t.Errorf("%q becomes %q, which takes in what comes below", s, got)
		}
	})
}

// check checks the guarantees of Neutral.
func check(t *testing.T, s, got string) {
	t.Helper()
	if d := read(got, commonMark); d.live {
		t.Errorf("%q becomes %q, which has HTML or images", s, got)
	}
	if ownMarker.MatchString(got) {
		t.Errorf("%q becomes %q, which holds a marker", s, got)
	}
	if oneBlock(got) {
		return
	}
	read(got, commonMark).rewrite(func(p string) string {
		if Unping(p) != p && Unping("x"+p) != "x"+p {
			t.Errorf("%q becomes %q, which mentions someone in %q", s, got, p)
		}
		return p
	}, func(c string) string { return c })
}

// Every part fits and is neutral by itself, and no words are lost.
func FuzzParts(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
		f.Add(strings.Repeat(s+"\n\n", 20))
	}
	f.Fuzz(func(t *testing.T, s string) {
		const limit = 2 * MinSplit
		if len(s) > 20*limit {
			return
		}
		var all strings.Builder
		for i, p := range Parts(s, limit, Bytes) {
			if len(p) > limit || !utf8.ValidString(p) {
				t.Errorf("part %d of %q has %d bytes: %q", i, s, len(p), p)
			}
			if Neutral(p) != p {
				t.Errorf("part %d of %q is not neutral: %q", i, s, p)
			}
			all.WriteString(p)
		}
		rest := all.String()
		for _, r := range Neutral(s) {
			if at := strings.IndexRune(rest, r); unicode.IsLetter(r) && at < 0 {
				t.Fatalf("the parts of %q lack %q", s, r)
			} else if unicode.IsLetter(r) {
				rest = rest[at:][utf8.RuneLen(r):]
			}
		}
	})
}
