package display

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext, ünïcödé 日本 👍":                                "plain\n\ttext, ünïcödé 日本 👍",
		"\x1b[31mred\x1b[0m, \x1b[2J\x1b[1;1Hgone":                   "red, gone",
		"\x1b]0;title\x07, \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": ", link",
		"\x1bPq#0\x1b\\sixel, \x1b7\x1b(0box":                        "sixel, box",
		"cut off: \x1b":                                              `cut off: \x1b`,
		"nul \x00, next \u0085 line, naïve שלום 🙂":                   `nul \x00, next \x85 line, naïve שלום 🙂`,
		"C1: \u009b31m":   `C1: \x9b31m`,
		"raw C1: \x9b31m": "raw C1: \ufffd31m",
		"\abell, \bback, \x7fdelete, over\rwritten": `\x07bell, \x08back, \x7fdelete, over\x0dwritten`,
		"line\r\nends":                 "line\nends",
		"turned \u202egnp.exe\u2066 !": `turned \u202egnp.exe\u2066 !`,
	} {
		if got := Text(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	const sent = "{\"a\":\"\u202eb\x7f\u009b1m\"}\x1b[2J\n"
	if got, want := JSON(sent), `{"a":"\u202eb\u007f\u009b1m"}\u001b[2J`+"\n"; got != want {
		t.Errorf("as JSON it is %q, want %q", got, want)
	}
	if got, want := Line(" a\n\tb\x1b[K  c\n"), "a b c"; got != want {
		t.Errorf("in a line it is %q, want %q", got, want)
	}
}

// Text begins like a sentence, unless its first word may be code or a name.
func TestCapital(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fix the test": "Fix the test", "Fix it": "Fix it", "": "", "ändere es": "Ändere es", "what's new?": "What's new?",
		"don’t ask": "Don’t ask", "hello, errand": "Hello, errand", "why?": "Why?", "a test": "A test",
		"e\u0301tat des tests": "E\u0301tat des tests",
	} {
		if got := Capital(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, same := range []string{
		"go.mod is old", "`go vet` fails", "cmd/worker leaks", "iOS fails", "left-pad is old", "fix: round", "x2 fails",
		"https://ci.example fails", "--race fails", "main() panics", "max_retries is ignored", "e.g. this", "修复测试",
		"გაასწორე ტესტი", "🐛 fix it", "“fix” it", "**fix** it", "@dana fix it", "useState fails",
		"npm install fails", "ssh, why?",
	} {
		if got := Capital(same); got != same {
			t.Errorf("%q: %q", same, got)
		}
	}
}
