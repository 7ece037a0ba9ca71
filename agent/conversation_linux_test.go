package agent

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// A conversation that the CLI does not know should start again with its history, and the prompt should still count
// as a command.
func TestCLIUnknownConversation(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{"lost": nil, "damaged": []byte("no session\n")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, dir := newModel(t, modelfake.Turn{Text: "Fine."}), t.TempDir()
			put(t, dir, map[string]string{".claude/commands/greet.md": "Greet the pelican."})
			res := runCLI(t, newCLI(t, model), Spec{
				ID: "unknown-" + name, Dir: dir, Prompt: Message{Text: "/greet"}, Profile: Write, TrustedConfig: true,
				Resume:  &Session{ID: "8a4f6b0e-58d1-4f0c-9d3b-1f4f0e3f9a11", Data: data},
				History: []Turn{{Role: User, Text: "I like teal. /clear"}, {Role: Assistant, Text: "Teal it is."}},
			}, &host{})
			if res.Outcome != Done || res.Text != "Fine." || !res.Fresh ||
				res.Session.ID == "8a4f6b0e-58d1-4f0c-9d3b-1f4f0e3f9a11" {
				t.Errorf("result = %+v", res)
			}
			body := string(model.Requests()[0].Body)
			for _, want := range []string{"USER: I like teal. /clear", "ASSISTANT: Teal it is.", "Greet the pelican."} {
				if !strings.Contains(body, want) {
					t.Errorf("the model did not get %q", want)
				}
			}
			if n := len(model.Requests()); n != 1 {
				t.Errorf("%d requests; the history was answered", n)
			}
		})
	}
}

// Attachments reach the model: pictures as pictures, text as text. The gateway uses the worker's proxy, and the CLI
// reaches the gateway without it.
func TestCLIFiles(t *testing.T) {
	t.Parallel()
	model := newModel(t, modelfake.Turn{Text: "Seen."})
	dead := httptest.NewServer(nil)
	dead.Close()
	behind := map[string]string{"HTTP_PROXY": dead.URL, "http_proxy": dead.URL, "no_proxy": "inside.example"}
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82")
	r := newCLI(t, model, impatient, func(c *Config) { c.Getenv = lookup(behind) })
	res := runCLI(t, r, Spec{ID: "files", Prompt: Message{
		Text: "Look.", Files: []File{
			{Name: "dot.png", Type: "image/png", Data: png},
			{Name: "notes.txt", Type: "text/plain", Data: []byte("a pelican")},
		},
	}}, &host{})
	body := string(model.Requests()[0].Body)
	if res.Text != "Seen." || !strings.Contains(body, `"media_type":"image/png"`) ||
		!strings.Contains(body, `<file name=\"notes.txt\">\na pelican\n</file>`) {
		t.Errorf("result %+v, request %s", res, body)
	}
}

// Plan mode changes nothing, even if the profile allows it. A message can change the mode, and the model, of the
// conversation that goes on.
func TestCLIPlanChangesNothing(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	touch := func(name string) modelfake.Turn { return bash("touch " + filepath.Join(dir, name)) }
	model.Answer("plan", call("Write", "file_path", filepath.Join(dir, "made"), "content", "x"), touch("touched"),
		modelfake.Turn{Text: "A plan."})
	model.Answer("go", touch("done"), modelfake.Turn{Text: "Done."})
	h := &host{more: []Message{{Text: "go", Model: "haiku", Mode: Act}}}
	r := newCLI(t, model)
	res := runCLI(t, r, Spec{
		ID: "plan", Dir: dir, Profile: Write, Model: "opusplan", Prompt: Message{Text: "plan", Mode: Plan},
	}, h)
	if log := r.read(t, "plan", ".log"); res.Text != "A plan.\n\nDone." || strings.Contains(log, "the gateway ") {
		t.Errorf("result = %+v, log:\n%s", res, log)
	}
	for name, want := range map[string]bool{"made": false, "touched": false, "done": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	calls := model.Requests()
	if first, last := calls[0], calls[len(calls)-1]; strings.Contains(first.Model, "haiku") ||
		!strings.Contains(last.Model, "haiku") || !strings.Contains(strings.ToLower(string(first.Body)), "plan mode") {
		t.Errorf("%s was asked first, %s last: %s", first.Model, last.Model, first.Body)
	}
}

// A stop also withdraws what waits behind the turn it breaks off; the CLI would begin a paid turn with it.
func TestCLIStopWithdrawsWhatWaits(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	gate, begun := make(chan struct{}), make(chan struct{}, 1)
	model.Answer("first", modelfake.Turn{Text: "one", Gate: gate, Started: begun})
	model.Answer("second", modelfake.Turn{Text: "two"})
	ctx, cancel := context.WithCancelCause(t.Context())
	handed := false // once the model works on the first: the CLI merges messages that arrive together
	hand := func(ctx context.Context) (Message, bool) {
		if !handed {
			handed = true
			<-begun
			return Message{Text: "second"}, true
		}
		cancel(errors.New("enough")) // the message is written to the CLI
		<-ctx.Done()
		return Message{}, false
	}
	res, err := newCLI(t, model).Run(ctx, Spec{
		ID: "withdraw", Dir: t.TempDir(), Prompt: Message{Text: "first"}, Profile: Read,
	}, &host{hand: hand})
	if err != nil || res.Outcome != Stopped {
		t.Errorf("%+v, %v", res, err)
	}
	for _, call := range model.Requests() {
		if strings.Contains(call.Text, "second") {
			t.Error("the waiting message was taken up")
		}
	}
}
