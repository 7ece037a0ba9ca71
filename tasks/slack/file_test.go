package slack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/slackfake"
)

// veryLongAnswer takes more messages than people read.
func veryLongAnswer() string { return strings.Repeat(longAnswer()+"\n\n", 2) }

// Of a very long answer the beginning is said, and all of it is in a file: once, whatever happens on the way.
func TestVeryLongAnswer(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{}, slackfake.Config{Now: steady()})
	task := w.task("")
	e := answered(veryLongAnswer())
	for _, method := range []string{"files.completeUploadExternal", "chat.postMessage"} {
		r := w.open(w.source, task)
		w.Fail(method, slackfake.Failure{After: true}) // it is there, and nobody knows
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

// An app that may not post files says all of it.
func TestVeryLongAnswerWithoutFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	w.Fail("files.getUploadURLExternal", slackfake.Failure{Error: "missing_scope", Times: -1})
	if err := w.open(w.source, task).Close(t.Context(), answered(veryLongAnswer())); err != nil {
		t.Fatal(err)
	}
	if n := len(partsOf(w.posted(task))); n <= maxParts+1 {
		t.Errorf("%d messages", n)
	}
}

// What is not taken in plain text either becomes a file, which notifies like a message.
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

// A table that Slack would not show is readable all the same.
func TestTables(t *testing.T) {
	t.Parallel()
	rows := func(n int) string { return "| a | b |\n|---|:-:|\n" + strings.Repeat("| 1 | 2 |\n", n) }
	wide := strings.Repeat("| x ", 21) + "|\n" + strings.Repeat("|---", 21) + "|\n"
	for name, tc := range map[string]struct {
		in     string
		framed bool
	}{
		"small":         {"x\n\n" + rows(99) + "\ny", false},
		"many rows":     {"x\n\n" + rows(100) + "\ny", true},
		"many columns":  {wide, true},
		"long":          {"| a | b |\n|---|---|\n| " + strings.Repeat("x", maxTableSize) + " | 2 |", true},
		"in code":       {"```\n" + rows(200) + "```\n", false},
		"no table":      {strings.Repeat("a | b\n", 200), false},
		"rule":          {"a\n---\n" + strings.Repeat("a | b\n", 200), false},
		"end of a text": {"| a |\n", false},
	} {
		got := tables(tc.in)
		if framed := got != tc.in; framed != tc.framed {
			t.Errorf("%s: framed: %v", name, framed)
		}
		if tc.framed && strings.Count(got, "```") != 2 {
			t.Errorf("%s: %s", name, got)
		}
	}
	want := "x\n\n```\n" + rows(100) + "```\n\ny"
	equal(t, "framed", tables("x\n\n"+rows(100)+"\ny"), want)
	for _, p := range inParts(marker{}, "", fmt.Sprint(rows(3000)), "") {
		equal(t, "fences", strings.Count(p.body, "```"), 2)
	}
}
