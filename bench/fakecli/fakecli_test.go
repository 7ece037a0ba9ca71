package fakecli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func user(text string) string {
	return `{"type":"user","message":{"role":"user","content":"` + text + `"}}` + "\n"
}

func control(subtype string) string {
	return `{"type":"control_request","request_id":"r1","request":{"subtype":"` + subtype + `"}}` + "\n"
}

// talk runs the fake on some input.
func talk(t *testing.T, input string) (output string, code int) {
	t.Helper()
	var out strings.Builder
	code = Main(strings.NewReader(input), &out)
	return out.String(), code
}

func TestControlRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, input, want string }{
		{"greeting", control("initialize"), `"request_id":"r1","response":{"commands":`},
		{"any other", control("set_model"), `"request_id":"r1","response":{}}}` + "\n"},
		{"an interrupt ends the turn", user("wait") + control("interrupt"), endLines},
		{"nothing after the end", control("end_session") + user("numbers 1"), `"response":{}}}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, code := talk(t, c.input)
			if code != 0 || !strings.Contains(out, c.want) || strings.Contains(out, Number(1)[:6]) {
				t.Errorf("exit %d with %s", code, out)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	out, code := talk(t, user("numbers 250"))
	if n := strings.Count(out, "text_delta"); code != 0 || n != 250 {
		t.Fatalf("exit %d with %d lines", code, n)
	}
	if !strings.HasPrefix(out, initLine) || !strings.HasSuffix(out, endLines) {
		t.Errorf("not a whole turn: %.200s … %.200s", out, out[len(out)-200:])
	}
}

// The SDK writes the text of a message in a list of blocks.
func TestReplay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "session")
	want := strings.Repeat("x", 1<<20) + "\n"
	if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := talk(t, `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"replay `+
		path+`"}]}}`+"\n")
	if code != 0 || out != want {
		t.Errorf("exit %d with %d bytes, want %d", code, len(out), len(want))
	}
}

func TestWhatIsNotUnderstoodIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"no JSON\n", user("dance"), user("replay /nowhere"), user("numbers many")} {
		if out, code := talk(t, input); code == 0 {
			t.Errorf("exit 0 for %q, with %s", input, out)
		}
	}
}
