package markdown

import (
	"strings"
	"testing"
)

const z = zeroWidth

func TestNeutral(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"mention", "@octocat, see (@acme/team)", "@" + z + "octocat, see (@" + z + "acme/team)"},
		{"in a row", "@@a _@b_ **@c**", "@" + z + "@" + z + "a _@" + z + "b_ **@" + z + "c**"},
		{"address", "me@example.com", "me@example.com"},
		{"entity", "&#64;a &#0064;b &#x40;c &#X40;d &commat;e", "&#64;" + z + "a &#0064;" + z + "b &#x40;" +
			z + "c &#X40;" + z + "d &commat;" + z + "e"},
		{
			"entity without an end", "<div>\n&#64a &#x40z &#00064;b &#640 &#x40f",
			"&lt;div>\n&#64" + z + "a &#x40" + z + "z &#00064;" + z + "b &#640 &#x40f",
		},
		{"begun as an entity", "@&#97;b", "@" + z + "&#97;b"},
		{"after a letter of another script", "é@a", "é@" + z + "a"},
		{
			"image", "![a](https://evil/?q=1) ![b][c] <IMG src=x> </picture>",
			"[a](https://evil/?q=1) [b][c] &lt;IMG src=x> &lt;/picture>",
		},
		{"image behind a sign", "!![a](https://evil)", "[a](https://evil)"},
		{"image in code", "```\n![a](b) <img>\n```\n", "```\n![a](b) <img>\n```\n"},
		{"HTML is text", "a <b> List<String> !x a < b <3", "a &lt;b> List&lt;String> !x a < b <3"},
		{"escaped HTML", `a \<b> \\<c>`, `a \<b> \\&lt;c>`},
		{"addresses", "<https://a.example/b> <me@example.com>", "<https://a.example/b> <me@example.com>"},
		{"address of a program", "<javascript:alert(1)>", "&lt;javascript:alert(1)>"},
		{"own marker", "x <!-- errand:review -->", "x &lt;!-- errand:review -->"},
		{"own marker, written otherwise", "<!--\n ERRAND:task=1 -->", "&lt;!--\n ERRAND:task=1 -->"},
		{"own marker in code", "```\n<!-- errand:work end -->\n```", "```\n<" + z + "!-- errand:work end -->\n```"},
		{"other comment", "<!-- hi", "&lt;!-- hi"},
		{"comment in code", "```\n<!-- hi -->\n```", "```\n<!-- hi -->\n```"},
		{"span of code", "`@a/b` and `List<T>`", "`@a/b` and `List<T>`"},
		{"span that is none in a table", "a | `b\n--|--\nx` | `@c`", "a | `b\n--|--\nx` | `@" + z + "c`"},
		{"span behind an address", "http://a.example/` @c `", "http://a.example/` @" + z + "c `"},
		{"formula", "$`a$ `@b`", "$`a$ `@" + z + "b`"},
		{"code", "a\n```go\n@a\n```\n@b", "a\n```go\n@a\n```\n@" + z + "b"},
		{"code with tildes", "~~~~\n@a\n~~~\n@b\n~~~~\n@c", "~~~~\n@a\n~~~\n@b\n~~~~\n@" + z + "c"},
		{"code to the end", "```\n@a", "```\n@a\n```"},
		{"code in a list", "- x\n  ```\n  @a\n  ```\n  @b", "- x\n  ```\n  @a\n  ```\n  @" + z + "b"},
		{"code in a quote", "> ```\n> @a\n\n@b", "> ```\n> @a\n\n@" + z + "b"},
		{"code by indentation", "a\n\n    @b <!-- x", "a\n\n    @" + z + "b &lt;!-- x"},
		{"no code: one line", "``` a ```\n@b", "``` a ```\n@" + z + "b"},
		// These lines are no fences in CommonMark, and were taken for closing fences.
		{
			"no end: backticks", "```\nx\n``` ```\n@a\n```\n@b ![c](d) <!-- e",
			"```\nx\n``` ```\n@a\n```\n@" + z + "b [c](d) &lt;!-- e",
		},
		{
			"no end: tildes", "~~~\nx\n~~~ ~~~\n@a\n~~~\n@b <img src=x>",
			"~~~\nx\n~~~ ~~~\n@a\n~~~\n@" + z + "b &lt;img src=x>",
		},
		{"no end: a formfeed", "```\n```\f\nx\n```\n@a\n```", "```\n```\\x0c\nx\n```\n@" + z + "a\n```\n```"},
		{"list ends code", "- ```\n  x\n  ```\n```\n@a", "- ```\n  x\n  ```\n```\n@a\n```"},
		{"quote ends code", "> ```\n> x\n\n  ```\n@a", "> ```\n> x\n\n  ```\n@a\n  ```"},
		{"diagram", "```mermaid\n@a <b>\n```", "```\n@a <b>\n```"},
		{"diagram in other letters", "- ~~~ &#77;ermaid x\n  %% a\n  ~~~", "- ~~~ \n  %% a\n  ~~~"},
		{"formula in a block", "```math\na\n```", "```\na\n```"},
		{"change to commit", "```suggestion\nx\n```\n\n```go\ny\n```", "```\nx\n```\n\n```go\ny\n```"},
		{"comment around code", "<!--\n```\n-->\n@a", "&lt;!--\n```\n-->\n@a\n```"},
		{"lone carriage return", "```\nx\r```\r@a\r\n@b", "```\nx\n```\n@" + z + "a\n@" + z + "b"},
		{"not closed by four spaces", "```\n    ```\n@a", "```\n    ```\n@a\n```"},
		{"direction", "a\u202eb", `a\u202eb`},
	} {
		got := Neutral(c.in)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if again := Neutral(got); again != got {
			t.Errorf("%s: again %q, was %q", c.name, again, got)
		}
	}
}

func TestNeutralLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"``` @a":           "``` @" + z + "a",
		"- @a `@b` <c>":    "- @" + z + "a `@b` &lt;c>",
		"List<T> ![a](b)":  "List&lt;T> [a](b)",
		"[x]: https://a/@": "[x]: https://a/@" + z,
		"a\n\n# @b":        "a # @" + z + "b",
	} {
		if got := NeutralLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Text that would take too long to parse becomes a block of code, in linear time.
func TestUntame(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"brackets": strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "quotes": strings.Repeat(">", 5000),
		"lists":  strings.Repeat("- ", 5000) + "@a",
		"indent": strings.Repeat(" ", 5000) + "@a", "long": strings.Repeat("@a ![b](c)\n\n", 40_000),
		"links": strings.Repeat("[a](", 5000),
	} {
		got := Neutral(in)
		if Tame(in) || !oneBlock(got) || Neutral(got) != got {
			t.Errorf("%s: %.60q", name, got)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	for in, end := range map[string]string{
		"":                            "",
		"a":                           "",
		"```go\na":                    "\n```",
		"```go":                       "\n```",
		"```go\na\n```\nb":            "",
		"~~~~\na\n~~~":                "\n~~~~",
		"- a\n- b\n\n```\nc":          "\n```",
		"- ```\n  a\n  ```\n\n```\nb": "\n```",
		"  ```\na":                    "\n  ```",
		"- a\n  ```\n  b":             "\n  ```",
		"- a\n  ```\n  b\n  ```\nc":   "",
		"- ```\n  a":                  "\n  ```",
		"> ```\n> a":                  "\n> ```",
		"    ```\na":                  "",
		"a ``` b":                     "",
		"```\na\n\n    ```":           "\n```",
		"```\na\n``` ```":             "\n```",
	} {
		if got := Closed(in); got != in+end {
			t.Errorf("%q: %q, want %q behind it", in, got, end)
		}
	}
}
