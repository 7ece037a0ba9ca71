package slack

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	a, b, c := strings.Repeat("a", 199), strings.Repeat("b", 199), strings.Repeat("c", 99)
	code := func(n int) string { return strings.Repeat("code line\n", n) }
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
		{"after a space", strings.Repeat("word ", 100), []string{strings.Repeat("word ", 60), strings.Repeat("word ", 40)}},
		{"after a space before the limit", strings.Repeat("words, ", 60), []string{strings.Repeat("words, ", 42), strings.Repeat("words, ", 18)}},
		{"hard", strings.Repeat("ä", 650), []string{strings.Repeat("ä", 300), strings.Repeat("ä", 300), strings.Repeat("ä", 50)}},
		{
			"in a block", "intro\n\n```go\n" + code(40) + "```\nend",
			[]string{"intro\n\n```go\n" + code(28) + "```", "```go\n" + code(12) + "```\nend"},
		},
		{
			"in a block of a list", "- x\n  ~~~~sh\n" + code(40) + "  ~~~~\nend",
			[]string{"- x\n  ~~~~sh\n" + code(28) + "  ~~~~", "  ~~~~sh\n" + code(12) + "  ~~~~\nend"},
		},
		{"before a block", a + "\n" + c[:90] + "\n```go\n" + code(3) + "```", []string{a + "\n" + c[:90], "```go\n" + code(3) + "```"}},
		{"a long line in a block", "```\n" + strings.Repeat("x", 400) + "\n```", []string{
			"```\n" + strings.Repeat("x", 292) + "\n```", "```\n" + strings.Repeat("x", 108) + "\n```",
		}},
		{"a block without end", "```\nx", []string{"```\nx\n```"}},
		{"no block", "```x``` y", []string{"```x``` y"}},
		{"a block that shows one", "````\n```\n" + code(40) + "````", []string{
			"````\n```\n" + code(28) + "````", "````\n" + code(12) + "````",
		}},
	} {
		equal(t, tc.name, split(tc.text, minSplit), tc.want)
	}
}

// Whatever the text: nothing is lost or changed but at the cuts, every part fits, and every block of code ends where it begins.
func TestSplitKeepsEverything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		text, limit := randomMarkdown(r), minSplit+r.IntN(1000)
		var whole strings.Builder
		list := pieces(text, limit)
		for i, p := range list {
			whole.WriteString(p.text)
			s := p.String()
			if n := utf8.RuneCountInString(s); n > limit || !utf8.ValidString(s) {
				t.Fatalf("seed %d: part %d of %d has %d characters, limit %d:\n%s", seed, i, len(list), n, limit, s)
			}
			if open := unclosed(s); open != "" {
				t.Fatalf("seed %d: part %d of %d leaves %q open:\n%s", seed, i, len(list), open, s)
			}
			if i > 0 && (p.open != "") != (list[i-1].end != "") {
				t.Fatalf("seed %d: part %d begins with %q, the one before ends with %q", seed, i, p.open, list[i-1].end)
			}
			if i+1 == len(list) {
				continue
			}
			// It is as full as it can be without cutting the line that comes next, or the one behind the beginning of a block.
			next := strings.Join(strings.SplitAfterN(list[i+1].text, "\n", 3)[:min(2, strings.Count(list[i+1].text, "\n")+1)], "")
			if n := utf8.RuneCountInString(s + next); n+longFence < limit/2 {
				t.Fatalf("seed %d: part %d of %d has room for more than %q, limit %d:\n%s", seed, i, len(list), next, limit, s)
			}
		}
		if whole.String() != text {
			t.Fatalf("seed %d: the parts are not the text", seed)
		}
	}
}

// A limit that is no limit is not kept, but the end is reached.
func TestSplitWithTooLittleRoom(t *testing.T) {
	t.Parallel()
	equal(t, "text", split("abc", 0), []string{"a", "b", "c"})
	equal(t, "code", split("```\nab\n```", 1), []string{"`", "`", "`", "a", "b", "`", "`", "`"})
}

var (
	opening = regexp.MustCompile("^[ \t]*(`{3,}[^`]*|~{3,}.*)$")
	marks   = regexp.MustCompile("^(`+|~+)")
)

// unclosed is the line of a text that begins a block of code without end, by another way than the code under test.
func unclosed(text string) string {
	open, mark := "", ""
	for l := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(l)
		switch {
		case open == "" && opening.MatchString(l) && len(l) <= longFence:
			open, mark = l, marks.FindString(bare)
		case open != "" && len(bare) >= len(mark) && strings.Count(bare, mark[:1]) == len(bare):
			open = ""
		}
	}
	return open
}

func randomMarkdown(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(40) {
		switch r.IntN(10) {
		case 0:
			b.WriteString(strings.Repeat("\n", 1+r.IntN(3)))
		case 1:
			fmt.Fprintf(&b, "%s%s%s\n", strings.Repeat(" ", r.IntN(4)), strings.Repeat("`", 2+r.IntN(4)), []string{"", "go", " sh x", "a`b"}[r.IntN(4)])
		case 2:
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat("~", 3+r.IntN(2)), []string{"", "json"}[r.IntN(2)])
		case 3:
			b.WriteString(strings.Repeat("x", r.IntN(3000)) + "\n")
		case 4:
			b.WriteString(strings.Repeat("wörd ", r.IntN(400)) + "\n\n")
		case 5:
			b.WriteString("```" + strings.Repeat("i", r.IntN(150)) + "\n")
		case 6:
			b.WriteString(strings.Repeat("- 日本語🙂\r\n", r.IntN(60)))
		case 7:
			b.WriteString(strings.Repeat("`", r.IntN(2500)) + "\n")
		default:
			b.WriteString("a line of text\n")
		}
	}
	return b.String()
}
