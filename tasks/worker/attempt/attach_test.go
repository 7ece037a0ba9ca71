package attempt

import (
	"os/exec"
	"strings"
	"testing"
)

// The agent learns of a browser, if there is one: the smaller one first.
func TestBrowserHint(t *testing.T) {
	t.Parallel()
	for installed, want := range map[string]string{
		"chromium": ": chromium --headless ", "chromium chromium-headless-shell": ": chromium-headless-shell --headless ", "": "",
	} {
		got := browserHint(func(program string) (string, error) {
			for have := range strings.FieldsSeq(installed) {
				if have == program {
					return "/usr/bin/" + program, nil
				}
			}
			return "", exec.ErrNotFound
		})
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q: %q", installed, got)
		}
	}
}
