package display

import (
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for _, same := range []string{
		"", "a\tb\n", "می\u200cخواهم", "ক্\u200cষ ক্\u200dষ", "සිංහල ශ්\u200dරී", "ᠮᠣᠩᠭᠣᠯ\u180b", "تُ\u200cب",
		"👩\u200d💻", "👨\u200d👩\u200d👧\u200d👦", "❤\ufe0f", "❤\ufe0f\u200d🔥", "🏳\ufe0f\u200d🌈", "👩🏽\u200d⚕\ufe0f", "🙂\u200d↔\ufe0f", "1\ufe0f⃣ #\ufe0f⃣", "ℹ\ufe0f ‼\ufe0f ™\ufe0f ㊗\ufe0f", "\u0600۱۲ \u06dd",
	} {
		if got := Words(same); got != same {
			t.Errorf("%q becomes %q", same, got)
		}
	}
	for in, want := range map[string]string{
		"ig\u200dno\u200cre\ufe0f":          "ignore",
		"é\u200cö\u200d":                    "éö",
		"a\u0301\u200d":                     "a\u0301",
		"語\u200d語\u200c":                    "語語",
		"\u200d\u200ca\u200d":               "a",
		"م\u200c\u200c\u200d\u200cم":        "م\u200cم",
		"❤\ufe0f\ufe0f\ufe0f\u200d\u200da":  "❤\ufe0fa",
		"👩\u200da👩\u200d":                   "👩a👩",
		"1\ufe0f2":                          "12",
		"a\u200bb\u2060c\ufeffd\u00ade":     "abcde",
		"a\u202eb\u2066c\u2069\u200e\u061c": "abc",
		"🏴\U000e0067\U000e007f":             "🏴",
		"葛\U000e0100":                       "葛",
		"a\u3164\u115f\u034fb":              "ab",
		"a\x00\x1b[31mb\r\nc\x7f":           "a[31mb\nc",
		"a\xffb":                            "a\ufffdb",
	} {
		if got := Words(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if long := strings.Repeat("م\u200c", 100_000); Words(long) != long {
		t.Error("a long text is changed")
	}
}
