package house

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestRaceDetector checks that scripts/test recognises concurrent code, also in tests.
func TestRaceDetector(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../scripts/test")
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile(`(?m)^concurrent='(.*)'$`).FindSubmatch(text)
	if pattern == nil || !strings.Contains(string(text), "in GoFiles TestGoFiles XTestGoFiles; do") {
		t.Fatal("scripts/test has another form")
	}
	concurrent := "\tgo func() {\n\tgo f2(x)\n\tgo a.b[0](x)\n\tg.Go(f)\nimport \"sync\"\n\t\"sync/atomic\"\n" +
		"\ttime.AfterFunc(d, f)\nfunc f(c chan<- int) {\n\tx chan\n"
	grep := exec.CommandContext(t.Context(), "grep", "-E", string(pattern[1]))
	grep.Stdin = strings.NewReader(concurrent + "// go to the next\n\tgopher()\n\tchange(x)\n\"synchronous\"\n")
	if out, err := grep.Output(); err != nil || string(out) != concurrent {
		t.Errorf("%v, concurrent are\n%s", err, out)
	}
}
