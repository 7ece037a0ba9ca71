package markdown

import (
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// Parsing 16 times the text takes at most about the square of that as long. These texts once took far more.
func TestTimeIsBounded(t *testing.T) { //nolint:paralleltest // it compares times
	type hostile struct {
		text string
		n    int
		do   func(string)
	}
	read := func(s string) {
		page, _, _ := ReadPage(s).Without("a")
		_ = page.String()
	}
	all := map[string]hostile{
		"items that each begin a block": {"1. ```\n\n", 750, func(s string) { Split(s, 4000, utf8.RuneCountInString) }},
		"footnotes":                     {"[^1]:\n\n", 1000, read},
		"footnotes in one text":         {"[^a]: [^b]\n", 250, read},
		"marks and joiners":             {"\u0301\u200d", 800, read},
		"references":                    {"[^1] a\n\n[^1]: a\n\n", 200, read},
	}
	for _, s := range []string{
		"[", "![", "[a](", "<", "<!--", "<!-- -->", "`", "a`b``", "_", "_@", ">", "> ", "- ", "> - ", "<a ",
		"<a href=\"", "&#64;", "|", "|a|b|\n|-|-|\n", "\\", "<?", "<![CDATA[", "[a]: b\n", "\t", "<div>\n",
		"<code>", "</code>", "<blockquote>\n\n", "@a ", "(<", "[`", "\x00", "\r\n", "a\u200d", "\ufe0f", "\xff",
		"<pre>\n", "</pre>\n", "www.", "https://",
	} {
		all[s] = hostile{s, 4 << 10 / len(s), read}
	}
	for name, c := range all {
		took := func(n int) time.Duration {
			text, begun := strings.Repeat(c.text, n), processorTime(t)
			c.do(text)
			return processorTime(t) - begun
		}
		few := max(min(took(c.n), took(c.n), took(c.n)), time.Millisecond)
		limit := 300 * few // for 16 times the text: at most its square
		if many := took(16 * c.n); many > limit && took(16*c.n) > limit {
			t.Errorf("%s: %v for %d, %v for %d", name, few, c.n, many, 16*c.n)
		}
	}
}

// goldmark fills each row of a table up to the width of its head. Such a comment once took gigabytes of memory.
func TestCellsAreBounded(t *testing.T) {
	t.Parallel()
	wide := func(columns, rows int) string {
		head := strings.Repeat("a|", columns) + "\n" + strings.Repeat("-|", columns) + "\n"
		return head + strings.Repeat("a\n", rows) + "\n"
	}
	for name, text := range map[string]string{"one": wide(1000, 1000), "many": strings.Repeat(wide(100, 100), 40)} {
		if Tame(text) {
			t.Errorf("%s: a text of %d bytes with so many cells is parsed", name, len(text))
		}
		if got := ReadPage("@bot look\n\n" + text); len(got.rest) == 0 || len(got.mentions) != 1 {
			t.Errorf("%s: %d bytes are taken for code, and there are %d mentions", name, len(got.rest), len(got.mentions))
		}
	}
	if full := "| a | b | c | d |\n|-|-|-|-|\n" + strings.Repeat("| 1 | 2 | 3 | 4 |\n", 2000); !Tame(full) {
		t.Error("a long table is not parsed")
	}
}

// processorTime is the time that this process has computed, which other processes do not lengthen.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
