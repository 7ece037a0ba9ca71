package slack

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// veryLongAnswer takes more messages than people read.
func veryLongAnswer() string { return strings.Repeat(longAnswer()+"\n\n", 2) }

// The start of a very long answer is posted, and the whole answer is in a file: once, whatever fails on the way.
func TestVeryLongAnswer(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	e := answered(veryLongAnswer())
	for _, method := range []string{"files.completeUploadExternal", "chat.postMessage"} {
		r := w.open(w.source, task)
		w.Fail(method, slackfake.Failure{After: true}) // it exists, and the response was lost
		if err := r.Close(t.Context(), e); err == nil {
			t.Errorf("%s: no error", method)
		}
	}
	if err := w.open(w.process(Config{}), task).Close(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	posted := w.posted(task)
	equal(t, "parts", partsOf(posted), []string{"status", "", "final/1"})
	if file := posted[1].Files[0]; string(file.Data) != strings.TrimSpace(e.Result.Text) {
		t.Errorf("the file has %d of %d bytes", file.Size, len(e.Result.Text))
	}
	messages(t, "file", posted)
}

// An app that may not post files posts the whole answer as messages.
func TestVeryLongAnswerWithoutFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	w.Fail("files.getUploadURLExternal", slackfake.Failure{Error: "missing_scope", Times: -1})
	if err := w.open(w.source, task).Close(t.Context(), answered(veryLongAnswer())); err != nil {
		t.Fatal(err)
	}
	if n := len(partsOf(w.posted(task))); n <= 5 {
		t.Errorf("%d messages", n)
	}
}

// A message that Slack also refuses as plain text becomes a file, which notifies like a message.
func TestAnswerAsFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	r := w.open(w.source, task)
	w.Fail("chat.postMessage", slackfake.Failure{Error: "msg_too_long", Times: -1})
	if err := r.Close(t.Context(), answered("Forty-two.")); err != nil {
		t.Fatal(err)
	}
	posted := w.posted(task)
	equal(t, "file", string(posted[1].Files[0].Data), "Forty-two.")
	messages(t, "as_file", posted)
}
