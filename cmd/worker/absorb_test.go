package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

// fleet returns the states of all tasks by their prompts.
func (w *world) fleet(base string) map[string]tasks.Status {
	w.Helper()
	var list struct{ Tasks []tasks.Status }
	if err := json.Unmarshal([]byte(w.get(base+"/api/tasks")), &list); err != nil {
		w.Fatal(err)
	}
	all := map[string]tasks.Status{}
	for _, s := range list.Tasks {
		all[s.Task.Prompt] = s
	}
	return all
}

// gate is a tool call that lasts until it is opened.
func (w *world) gate() (call modelfake.ToolCall, open func()) {
	w.Helper()
	// Not below the directory for temporary files, which a sandbox replaces.
	dir, err := os.MkdirTemp("/var/tmp", "we")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "go")
	command := "until [ -e " + path + " ]; do command sleep 0.05; done"
	return modelfake.ToolCall{Name: "Bash", Input: map[string]string{"command": command}}, func() {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			w.Error(err)
		}
	}
}

// A worker is shut down when one message has been taken up and another has not. The run continues with the first, and
// the second is sent again, with the prompt or after it. tasks/worker has what happens after a death.
func TestAbsorbedMessagesSurviveTheirWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call, open := w.gate()
	last, _ := w.gate()
	w.model.Answer("paint it", modelfake.Turn{Tools: []modelfake.ToolCall{call}})
	taken := make(chan struct{}, 1)
	w.model.Answer("make it blue", modelfake.Turn{Started: taken, Tools: []modelfake.ToolCall{last}})
	w.model.Answer("You were interrupted", modelfake.Turn{Text: "I go on."})
	w.model.Answer("and shiny", modelfake.Turn{Text: "All of it; {{turns}} prompts."})
	base := w.frontDoor()
	worker := w.process()
	root := w.mention("paint it", "")
	w.saying(root, "Working: running")
	blue := w.mention("make it blue", root)
	w.saying(root, "take that into account")
	open()
	<-taken
	w.checkpointed(w.taskID(root), w.taskID(blue))
	w.mention("and shiny", root)
	w.until("the second note", func() bool { return w.said(root, "take that into account") == 2 })
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	w.env["ERRAND_STATE_DIR"] = filepath.Join(t.TempDir(), "another")
	w.process()
	want := []string{"I go on.", "All of it; 4 prompts."}
	final := w.answers(root, 1)[0]
	for _, r := range w.model.Requests() {
		if strings.Contains(r.Text, "You were interrupted") && strings.Contains(r.Text, "and shiny") {
			// the CLI had both before it started, and made one prompt of them
			want = []string{"All of it; 3 prompts."}
		}
	}
	for _, words := range want {
		if !strings.Contains(final, words) {
			t.Errorf("%q is not in the final message: %s", words, final)
		}
	}
	all := w.fleet(base)
	covers := []string{all["make it blue"].Task.ID, all["and shiny"].Task.ID}
	if first := all["paint it"]; first.Ending == nil || !slices.Equal(first.Ending.Covers, covers) {
		t.Errorf("the task ended as %+v, want it to cover %s", first.Ending, covers)
	}
	body := string(w.model.Requests()[len(w.model.Requests())-1].Body)
	for _, said := range []string{"paint it", "make it blue", "and shiny"} {
		if n := strings.Count(body, said); n != 1 {
			t.Errorf("%q was posted %d times", said, n)
		}
	}
}

// until waits until the workspace satisfies a condition.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	ctx := await.Context(w)
	if err := w.slack.Wait(ctx, func(*slackfake.Server) bool { return done() }); err != nil {
		w.Fatalf("wait for %s: %v", what, err)
	}
}

// saying waits until the bot has posted a text in a thread.
func (w *world) saying(thread, text string) {
	w.Helper()
	w.until(text, func() bool { return w.said(thread, text) > 0 })
}

// said counts the bot's messages in a thread that contain a text.
func (w *world) said(thread, text string) (n int) {
	for _, m := range w.slack.Messages(channel, thread) {
		if m.BotID != "" && strings.Contains(m.Text+string(m.Blocks), text) {
			n++
		}
	}
	return n
}
