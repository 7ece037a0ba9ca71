package github

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("word ", 70) + "\n" // 351 bytes
	code := strings.Repeat("code()\n", 100)    // 700 bytes
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"short", "a\n\nb", []string{"a\n\nb"}},
		{"between paragraphs", word + "\n" + word + "\n" + word, []string{word + "\n" + strings.TrimSuffix(word, "\n"), word}},
		{"between lines", word + word + word + word, []string{word + strings.TrimSuffix(word, "\n"), word + word}},
		{"around code", word + word + "\n```go\n" + code + "```\nend", []string{
			word + strings.TrimSuffix(word, "\n"), "```go\n" + code + "```\nend",
		}},
		{"in code", "```go\n" + code + code + "```\nend", []string{
			"```go\n" + strings.Repeat("code()\n", 141) + "```", "```go\n" + strings.Repeat("code()\n", 59) + "```\nend",
		}},
		{"in a line", strings.Repeat("ä", 600), []string{strings.Repeat("ä", 499), strings.Repeat("ä", 101)}},
	} {
		got := split(c.in, 1000)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Whatever the text: every part fits, and together they are the text but for the line ends and fences at the cuts.
func FuzzSplit(f *testing.F) {
	long := strings.Repeat("x", 700)
	for _, seed := range []string{
		"", long, "```\n" + long, "```\n" + long + "\n```", "```" + long, strings.Repeat("`", 600) + "\n" + long, "~~~ a\n\n\n" + long + "\n\n~~~\n\n" + long,
		"- ```\n" + long, strings.Repeat("\n", 700), strings.Repeat("```\n", 200), "```\n" + strings.Repeat(" ", 700) + "\n```", strings.Repeat("日\n", 300),
	} {
		f.Add(seed)
	}
	strip := strings.NewReplacer("\n", "", "`", "", "~", "")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		const limit = 300
		parts := split(text, limit)
		for i, p := range parts {
			if len(p) > limit || !utf8.ValidString(p) {
				t.Errorf("part %d of %q has %d bytes: %q", i, text, len(p), p)
			}
		}
		want := strip.Replace(text)
		got := strip.Replace(strings.Join(parts, ""))
		// A fence that is opened again repeats what stands beside it.
		if len(got) < len(want) || !strings.Contains(text, "```") && !strings.Contains(text, "~~~") && got != want {
			t.Errorf("parts %q\nof    %q", got, want)
		}
	})
}

func TestClosed(t *testing.T) {
	t.Parallel()
	for in, end := range map[string]string{
		"a":                           "",
		"```go\na":                    "\n```",
		"```go\na\n```\nb":            "",
		"~~~~\na\n~~~":                "\n~~~~",
		"- a\n- b\n\n```\nc":          "\n```",
		"- ```\n  a\n  ```\n\n```\nb": "\n```",
		"  ```\na":                    "\n  ```",
		"- a\n  ```\n  b":             "\n  ```",
		"- a\n  ```\n  b\n  ```\nc":   "",
		"    ```\na":                  "",
		"<b>a</b>\n\n```\nb":          "\n```",
		"<div>\n```\n</div>\n\na":     "",
		"a ``` b":                     "",
		"```\na\n\n    ```":           "\n```",
	} {
		if got := closed(in); got != in+end {
			t.Errorf("%q: %q, want %q behind it", in, got[len(in):], end)
		}
	}
}
