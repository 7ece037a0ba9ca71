package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// The first line of a standalone start says that tasks cannot run and what to do, and no line has a configured token.
// Once the CLI is in place, tasks run.
func TestStandaloneWithoutACLI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cli := w.env["ERRAND_CLAUDE"]
	dir, err := os.MkdirTemp("/var/tmp", "we") //nolint:usetesting // a sandbox replaces what is below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.env["ERRAND_CLAUDE"] = filepath.Join(dir, "claude")
	lines := w.start()
	var head []string
	base, invited := "", false
	for !strings.HasPrefix(lines.Text(), "  github") && lines.Scan() {
		head = append(head, lines.Text())
		if url, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "console"); ok {
			base, _, invited = strings.Cut(strings.TrimSpace(url), "/login?once=")
		}
	}
	go func() {
		for lines.Scan() { // to the end, so that it does not block
		}
	}()
	text := strings.Join(head, "\n")
	if strings.Contains(text, "is up") || !strings.HasPrefix(text, "errand cannot run tasks:") ||
		!strings.Contains(text, "remedy   run npm ci") {
		t.Errorf("got: %s", text)
	}
	if strings.Contains(text, token) || strings.Contains(text, "  token") || !invited {
		t.Errorf("printed the configured token, or no invitation: %s", text)
	}
	w.slack.Deliver(base + "/slack/events")
	root := w.mention("hello", "")
	w.says(root, "No worker can run tasks")
	if err := os.Symlink(cli, w.env["ERRAND_CLAUDE"]); err != nil {
		t.Fatal(err)
	}
	w.answers(root, 1)
}

// says waits for a message of the bot with this text.
func (w *world) says(thread, words string) (text string) {
	w.Helper()
	ctx := await.Context(w)
	err := w.slack.Wait(ctx, func(s *slackfake.Server) bool {
		for _, m := range s.Messages(channel, thread) {
			if text = m.Text + string(m.Blocks); m.BotID != "" && strings.Contains(text, words) {
				return true
			}
		}
		return false
	})
	if err != nil {
		w.Fatalf("wait for %q: %v; the thread is %+v", words, err, w.slack.Messages(channel, thread))
	}
	return text
}
