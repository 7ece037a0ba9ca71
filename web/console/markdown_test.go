package console

import (
	"strings"
	"testing"
)

func TestFormatted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"# Title\n\n**bold** `x<y>` ~~gone~~\nnext": "<h3>Title</h3><p><strong>bold</strong> <code>x&lt;y&gt;</code> <del>gone</del><br>\nnext</p>\n",
		"###### deep":              "<h6>deep</h6>",
		"```go\na <b>\n```":        "<pre><code class=\"language-go\">a &lt;b&gt;\n</code></pre>\n",
		"<b onclick=x>List<T></b>": "<p>&lt;b onclick=x&gt;List&lt;T&gt;&lt;/b&gt;</p>\n",
		"<div>\n<script>\n</div>":  "<p>&lt;div&gt;<br>\n&lt;script&gt;<br>\n&lt;/div&gt;</p>\n",
		"[ok](https://a.test/?b=c&d)": `<p><a href="https://a.test/?b=c&amp;d" rel="noopener nofollow">ok</a></p>` +
			"\n",
		"https://a.test, <b@c.test>":  `<p><a href="https://a.test" rel="noopener nofollow">https://a.test</a>, <a href="mailto:b@c.test" rel="noopener nofollow">b@c.test</a></p>` + "\n",
		"![pixel](https://a.test/p)":  `<p><a href="https://a.test/p" rel="noopener nofollow">pixel</a></p>` + "\n",
		"[code](total.go:9)":          `<p>code <span class="to">(total.go:9)</span></p>` + "\n",
		"[x](javascript:alert(1))":    `<p>x <span class="to">(javascript:alert(1))</span></p>` + "\n",
		"[x](java&#115;cript:x)":      `<p>x <span class="to">(javascript:x)</span></p>` + "\n",
		"<javascript:x> ![x](data:y)": `<p>javascript:x x <span class="to">(data:y)</span></p>` + "\n",
		"[x](//a.test) [y](/queues/)": `<p>x <span class="to">(//a.test)</span> y <span class="to">(/queues/)</span></p>` + "\n",
		`[x](https://a.test/"onx=")`: `<p><a href="https://a.test/%22onx=%22" rel="noopener nofollow">x</a></p>` +
			"\n",
		"[x]\n\n[x]: https://a.test": `<p>[x]</p>` + "\n" +
			`<p>[x]: <a href="https://a.test" rel="noopener nofollow">https://a.test</a></p>` + "\n",
		"*a&#27;[* b&#27;]\n\nc&#7;": `<p><em>a\x1b[</em> b\x1b]</p>` + "\n" + `<p>c\x07</p>` + "\n",
		"```x&#27;[\na\n```":         `<pre><code class="language-x\x1b[">a` + "\n</code></pre>\n",
		"&#8238;a \x1b[31mb\x00":     `<p>\u202ea b\x00</p>` + "\n",
		"|a|\n|-:|\n|b|":             "<table>\n<thead>\n<tr>\n<th align=\"right\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"right\">b</td>\n</tr>\n</tbody>\n</table>\n",
	} {
		if got := string(formatMarkdown(in)); got != want {
			t.Errorf("%q is formatted as\n%q, want\n%q", in, got, want)
		}
	}
}

// Text that would take long to format is shown as it is. Each of these texts takes milliseconds.
func TestFormattingHasBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		plain bool
	}{
		"long":              {strings.Repeat("*a* ", maxMarkdown), true},
		"quotations":        {strings.Repeat(">", 1000) + "a", true},
		"spaced quotations": {strings.Repeat("> ", 1000) + "a", true},
		"brackets":          {strings.Repeat("[", maxMarkdown), true},
		"links in links":    {strings.Repeat("[a](", 2000), true},
		"lists":             {strings.Repeat("- ", 1000) + "a", true},
		"numbered lists":    {strings.Repeat("1. ", 1000) + "a", true},
		"wide table": {"|" + strings.Repeat("a|", 1000) + "\n|" +
			strings.Repeat("-|", 1000) + strings.Repeat("\n|", 1000), true},
		"large table": {"|" + strings.Repeat("a|", 60) + "\n|" +
			strings.Repeat("-|", 60) + strings.Repeat("\n|", 10_000), true},
		"long prose":      {strings.Repeat("many words in a line, ", 100) + "*a*", false},
		"shift operators": {"`1 >> 2 | 3`", false},
	} {
		got := string(formatMarkdown("*first*\n" + c.text))
		if plain := strings.HasPrefix(got, `<p class="plain">*first*`); plain != c.plain || len(got) > maxFormatted {
			t.Errorf("%s: plain is %t, in %d bytes", name, plain, len(got))
		}
	}
}
