package markdown

import (
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// Parsing 16 times the text takes about 16 times as long, and not 256 times. These texts once took seconds.
func TestTimeIsBounded(t *testing.T) { //nolint:paralleltest // it compares times
	for name, c := range map[string]struct {
		text string
		n    int
		do   func(string)
	}{
		"items that each begin a block": {"1. ```\n\n", 750, func(s string) { Split(s, 4000, utf8.RuneCountInString) }},
		"footnotes":                     {"[^1]:\n\n", 1000, func(s string) { Shown(s) }},
		"footnotes in one text":         {"[^a]: [^b]\n", 250, func(s string) { Shown(s) }},
		"references":                    {"[^1] a\n\n[^1]: a\n\n", 200, func(s string) { Shown(s) }},
	} {
		took := func(n int) time.Duration {
			text, best := strings.Repeat(c.text, n), time.Duration(0)
			for range 3 {
				begun := processorTime(t)
				c.do(text)
				if d := processorTime(t) - begun; best == 0 || d < best {
					best = d
				}
			}
			return best
		}
		if few, many := took(c.n), took(16*c.n); many > 100*few {
			t.Errorf("%s: %v for %d, %v for %d", name, few, c.n, many, 16*c.n)
		}
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
