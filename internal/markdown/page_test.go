package markdown

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	renderer "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
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
		got := shown(c.in)
		if got != strings.TrimSpace(c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func shown(s string) string { return ReadPage(s).String() }

// A text that would take too long is read as far as it does not, and nothing of it is lost.
func TestLongPage(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("> ", 100) + "@errand b"
	page, ours, _ := ReadPage("@errand a <!-- c -->\n\n" + deep + "\n@errand d").Without("errand")
	if got, want := page.String(), "a \n\n```\n"+deep+"\n@errand d\n```"; ours != 1 || got != want {
		t.Errorf("%d %q, want %q", ours, got, want)
	}
	log := "```\n" + strings.Repeat("[12:00] a -> [b] c `x` @errand\n", 900) + "```\n"
	for _, body := range []string{log + log + "\n@errand why?", strings.ReplaceAll(log, "\n", "\r\n") + "\r\n@errand why?"} {
		if page, ours, _ := ReadPage(body).Without("errand"); ours != 1 || !strings.HasSuffix(page.String(), "\n```\n\nwhy?") {
			t.Errorf("%d %.100q", ours, page)
		}
	}
}

// fragments are what the texts of TestPagesOfAnyText are made of.
var fragments = []string{
	"@errand", "word", "other", " ", " ", "\n", "\n", "\n\n", "\r\n", "`", "``", "```", "````", "~~~", "    ", "\t", "> ",
	"- ", "1. ", "# ", "\\", "[", "]", "](x)", "](x \"title\")", "![", "[x]: y\n", "<!--", "-->", "<!", "<?", "?>", "<![CDATA[",
	"]]>", "<code>", "</code>", "<pre>", "</pre>", "<div>", "</div>", "<div title=\"", "\"", "'", "<b a='x'>", "</b>",
	"<blockquote>", "</blockquote>", "<details>", "|", "a|b\n-|-\n", "|-|\n", "*", "_", "**", "https://a.example/", "<https://a>",
	"\x00", "\u200d", "\u00a0", "é", "\xff", "$", "---\n", "[!NOTE]\n", "<a href=x>", "</a>", "</", ">", "=",
}

// anyText returns a text that is the same for the same number.
func anyText(n uint64) string {
	r := rand.New(rand.NewPCG(n, 7))
	var b strings.Builder
	for range 1 + r.IntN(16) {
		b.WriteString(fragments[r.IntN(len(fragments))])
	}
	return b.String()
}

var github = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithRendererOptions(renderer.WithUnsafe()))

// lettersOn counts the letters that a browser shows of Markdown.
func lettersOn(t *testing.T, s string) map[string]int {
	t.Helper()
	var b bytes.Buffer
	if err := github.Convert([]byte(parseable(unified(strings.ToValidUTF8(s, "\ufffd")))), &b); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for n := range root.Descendants() {
		for _, r := range n.Data {
			if n.Type == html.TextNode && unicode.IsLetter(r) {
				count[string(r)]++
			}
		}
	}
	return count
}

// checkPage checks what holds for every text.
func checkPage(t *testing.T, s string) {
	t.Helper()
	if _, ours, _ := ReadPage(Fenced("", s+"\n@errand")).Without("errand"); ours > 0 {
		t.Errorf("%q mentions in a fence", s)
	}
	indented := "a\n\n    " + strings.ReplaceAll(unified(s), "\n", "\n    ") + "\n    @errand"
	if _, ours, _ := ReadPage(indented).Without("errand"); ours > 0 {
		t.Errorf("%q mentions in indented code", s)
	}
	page := ReadPage(s)
	if _, ours, _ := page.Without("nobody"); ours > 0 && !strings.Contains(s, "nobody") {
		t.Errorf("%q mentions nobody", s)
	}
	all := page.String()
	if rest, ours, _ := page.Without("errand"); ours > 0 && len(rest.String()) >= len(all) {
		t.Errorf("%q mentions and stays %q", s, all)
	}
	if special.MatchString(s) || !Tame(s) {
		return
	}
	for letter, n := range lettersOn(t, s) {
		if strings.Count(all, letter) < n {
			t.Errorf("%q is %q, without a %q", s, all, letter)
		}
	}
}

// special matches what checkPage's browser shows and GitHub does not, or in another place.
var special = regexp.MustCompile(`(?i)\[\^|&|mermaid|geojson|topojson|stl|math|` +
	`<(?:table|select|frameset|caption|col|tr|td|th|tbody|thead|tfoot|body|html|head|svg|noscript|template|button|input|option|` +
	`title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)`)

func TestPagesOfAnyText(t *testing.T) {
	t.Parallel()
	for n := range uint64(4000) {
		checkPage(t, anyText(n))
	}
}

func FuzzPage(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	for n := range uint64(50) {
		f.Add(anyText(n))
	}
	f.Fuzz(checkPage)
}
