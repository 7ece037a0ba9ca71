package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

func TestChatPrintsTheTask(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	code, out, errs := f.run("chat", "--repo", "acme/app,acme/web", "--thread", "t-1", "--agent", "strategist", "--model",
		"opus", "--effort", "low", "Fix", "the", "test")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	got := f.Status(f.whole(strings.TrimSuffix(out, "\n")))
	want := tasks.Task{
		Thread: "chat/t-1", Repo: "acme/app", Also: []string{"acme/web"}, Prompt: "Fix the test",
		Options: tasks.Options{Agent: "strategist", Model: "opus", Effort: "low"}, ID: got.Task.ID, Source: "chat",
		Kind: "chat", Class: tasks.Interactive, Profile: agent.Write, Actor: "console",
	}
	if diff := cmp.Diff(want, got.Task); diff != "" {
		t.Error(diff)
	}
	if got.State != "waiting" || got.Cancel != "" {
		t.Errorf("leaving made it %s, cancelled by %q", got.State, got.Cancel)
	}
}

// A prompt has the same options as a message in Slack.
func TestChatOptions(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "dot.png")
	if err := os.WriteFile(path, dot.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := f.run("chat", "--repo", "acme/app", "--branch", "next", "--budget", "2.50", "--timeout", "3s",
		"--plan", "--picture", path, "Look")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	got := f.Status(f.whole(strings.TrimSpace(out))).Task
	if diff := cmp.Diff(tasks.Options{MaxUSD: 2.5, Limit: 3 * time.Second, Plan: true}, got.Options); diff != "" ||
		got.Ref != "next" {
		t.Errorf("on %q: %s", got.Ref, diff)
	}
	if diff := cmp.Diff([]tasks.Picture{{Name: "dot.png", Type: "image/png"}}, got.Pictures); diff != "" {
		t.Error(diff)
	}
	for _, wrong := range [][]string{
		{"--budget", "much"}, {"--timeout", "3"}, {"--picture", path + ".missing"}, {"--branch", "next"},
	} {
		if code, _, errs := f.run(append(append([]string{"chat"}, wrong...), "Look")...); code == 0 || errs == "" {
			t.Errorf("%q: exit %d", wrong, code)
		}
	}
}

func TestChatInADirectory(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, f.dirs)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := f.run("chat", "--dir", relative, "Look")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	want, err := filepath.EvalSymlinks(f.dirs)
	if got := f.Status(f.whole(strings.TrimSpace(out))).Task.Dir; err != nil || got != want {
		t.Errorf("it works in %q, not %q", got, want)
	}
	if code, _, errs := f.run("chat", "--dir", "/etc", "Look"); code != 2 || !strings.Contains(errs, "Invalid path: ") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// The prompt may come from a file or another program.
func TestChatReadsThePrompt(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	code, out, errs := f.runWith("Fix\nthis\n", "chat", "-")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if got := f.Status(f.whole(strings.TrimSpace(out))).Task.Prompt; got != "Fix\nthis\n" {
		t.Errorf("it asks for %q", got)
	}
	if code, _, errs := f.runWith(" \n", "chat", "-"); code != 2 || !strings.Contains(errs, "the prompt is empty") {
		t.Errorf("nothing: exit %d: %s", code, errs)
	}
	if code, _, errs := f.runWith(strings.Repeat("a", maxPrompt+1), "chat", "-"); code != 2 ||
		!strings.Contains(errs, "too long") {
		t.Errorf("too much: exit %d: %s", code, errs)
	}
}

// For programs there is the API's own answer, of which nothing is left out or made harmless.
func TestChatJSON(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	code, out, errs := f.run("chat", "--json", "--thread", "t-1", "Hello")
	var first submitted
	if err := json.Unmarshal([]byte(out), &first); code != 0 || errs != "" || err != nil || first.Thread != "t-1" {
		t.Errorf("exit %d, %v: %s%s", code, err, out, errs)
	}
	r := f.start("chat", "--json", "--follow", "Hello")
	if err := json.Unmarshal([]byte(r.line(r.stdout)), &first); err != nil {
		t.Fatal(err)
	}
	c := f.Claim(first.ID)
	f.Append(c, agent.Event{Kind: agent.Text, Text: "4\x1b2"})
	f.End(c, tasks.Ending{Kind: tasks.Stalled})
	var event agent.Event
	if err := json.Unmarshal([]byte(r.line(r.stdout)), &event); err != nil || event.Text != "4\x1b2" {
		t.Errorf("%v: %+v", err, event)
	}
	var end task
	code, out, errs = r.rest()
	if err := json.Unmarshal([]byte(out), &end); err != nil || code != 4 || errs != "" || end.state() != "stalled" {
		t.Errorf("exit %d, %v: %s%s", code, err, out, errs)
	}
}
