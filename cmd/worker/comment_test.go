package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/tasks"
)

// pull opens a pull request that is not reviewed, because it is a draft.
func (w *world) pull() (number int) {
	w.Helper()
	w.github.SetPermission(repo, "ann", "write")
	n, err := w.github.OpenPR(w.Context(), githubfake.PR{
		Repo: repo, Head: "fix-total", Title: "Fix the total", User: "ann", Draft: true,
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	})
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) comment(n int, body string) (id int64) {
	w.Helper()
	id, err := w.github.Comment(w.Context(), repo, n, "ann", body)
	if err != nil {
		w.Fatal(err)
	}
	return id
}

// replies waits until errand has answered that often in a pull request, and returns the answers.
func (w *world) replies(number, n int) (all []string) {
	w.Helper()
	w.onGitHub(func() bool {
		all = all[:0]
		for _, c := range w.github.Comments(repo, number) {
			if c.User == "errand" && strings.HasPrefix(c.Body, "<!-- errand:reply ") {
				all = append(all, c.Body)
			}
		}
		return len(all) >= n
	})
	if len(all) != n {
		w.Errorf("%d replies, want %d: %q", len(all), n, all)
	}
	return all
}

// signed waits for a reaction of errand.
func (w *world) signed(number int, id int64, sign string) {
	w.Helper()
	w.onGitHub(func() bool {
		for _, c := range w.github.Comments(repo, number) {
			for _, r := range c.Reactions {
				if c.ID == id && r.Content == sign {
					return true
				}
			}
		}
		return false
	})
}

func (w *world) onGitHub(holds func() bool) {
	w.Helper()
	ctx := await.Context(w)
	if err := w.github.Wait(ctx, func(*githubfake.Server) bool { return holds() }); err != nil {
		w.Fatal(err)
	}
}

// endless is a tool call that does not end by itself. up waits until it is under way; after over is called, the next
// one ends at once.
func (w *world) endless() (call modelfake.ToolCall, up, over func()) {
	w.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "we") // see gate
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "up")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		w.Fatal(err)
	}
	command := "[ -e " + path + ".over ] || { echo up > " + path + "; command sleep 600; }"
	up = func() {
		if _, err := os.ReadFile(path); err != nil {
			w.Error(err)
		}
	}
	over = func() {
		if err := os.WriteFile(path+".over", nil, 0o600); err != nil {
			w.Error(err)
		}
	}
	return modelfake.ToolCall{Name: "Bash", Input: map[string]string{"command": command}}, up, over
}

// announcedGate is a gate with up, which waits until the call is under way.
func (w *world) announcedGate() (call modelfake.ToolCall, up, open func()) {
	w.Helper()
	call, open = w.gate()
	dir, err := os.MkdirTemp("/var/tmp", "we") // see gate
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "up")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		w.Fatal(err)
	}
	input, _ := call.Input.(map[string]string)
	call.Input = map[string]string{"command": "echo up > " + path + "; " + input["command"]}
	return call, func() {
		if _, err := os.ReadFile(path); err != nil {
			w.Error(err)
		}
	}, open
}

// A mention on a pull request is answered there once. A comment in the meantime is covered by the same answer, and the
// next question continues it.
func TestMentionOnPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call, up, open := w.announcedGate()
	w.model.Answer("why one", modelfake.Turn{Tools: []modelfake.ToolCall{call}}, modelfake.Turn{Text: "Because."})
	w.model.Answer("why not two", modelfake.Turn{Text: "Two is **too much**, @ann. ({{turns}} prompts)"})
	w.model.Answer("really", modelfake.Turn{Text: "Really. ({{turns}} prompts)"})
	n := w.pull()
	w.standalone()
	first := w.comment(n, "@errand why one?")
	up() // or the CLI gets both as one prompt
	second := w.comment(n, "@errand why not two?")
	w.signed(n, second, "eyes") // it is a task, and not only in the inbox
	open()
	w.signed(n, first, "hooray")
	w.signed(n, second, "hooray")
	if got := w.replies(n, 1)[0]; !strings.Contains(got, "Two is **too much**, @\u200bann. (2 prompts)") ||
		!strings.Contains(got, " and 1 more · ") {
		t.Error(got)
	}
	d, _ := w.github.LastDelivery("issue_comment")
	if err := w.github.Redeliver(t.Context(), d.GUID); err != nil {
		t.Fatal(err)
	}
	w.signed(n, w.comment(n, "@errand really?"), "hooray")
	if got := w.replies(n, 2)[1]; !strings.Contains(got, "Really. (3 prompts)") {
		t.Error(got)
	}
	w.secretsStayInside()
}

// A run for a pull request can be stopped and retried from there. Each ending is posted once.
func TestCancelAndRetryOnPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call, up, over := w.endless()
	w.model.Answer("why one", modelfake.Turn{Text: "Let me see.", Tools: []modelfake.ToolCall{call}},
		modelfake.Turn{Text: "Because."})
	n := w.pull()
	w.standalone()
	asked := w.comment(n, "@errand why one?")
	up()
	w.signed(n, w.comment(n, "/cancel"), "hooray")
	w.signed(n, asked, "confused")
	if got := w.replies(n, 1)[0]; !strings.Contains(got, "Stopped by ann.") || !strings.Contains(got, "> Let me see.") {
		t.Error(got)
	}
	over()
	w.signed(n, w.comment(n, "/retry"), "hooray")
	w.signed(n, asked, "hooray")
	if got := w.replies(n, 2)[1]; !strings.Contains(got, "Because.") {
		t.Error(got)
	}
}

// Work that started in Slack continues in its pull request, in the same conversation and on the same branch, and
// questions there are answered there.
func TestPullRequestJoinsItsThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bash := func(command string) modelfake.Turn {
		return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": command}}}}
	}
	w.github.SetPermission(repo, "ann", "write")
	w.model.Answer("mend the total", bash("echo '// cents' >> total.go && git commit -qam 'Count in cents'"),
		modelfake.Turn{Text: "Mended."})
	w.model.Answer("and the tax", bash("echo '// tax' >> total.go && git commit -qam 'And the tax'"),
		modelfake.Turn{Text: "The tax too. ({{turns}} prompts)"})
	base := w.standalone()
	root := w.mention("mend the total", "")
	w.answers(root, 1)
	w.signed(1, w.comment(1, "@errand and the tax?"), "hooray")
	if got := w.replies(1, 1)[0]; !strings.Contains(got, "The tax too. (2 prompts)") ||
		!strings.Contains(got, "Pull request "+repo+"#1") {
		t.Error(got)
	}
	w.published(w.github.Pulls(repo)[0].Head, "And the tax, Count in cents", "package total\n// cents\n// tax\n")
	w.answers(root, 1)
	if st, ok := w.fleet(base)["and the tax?"]; !ok || st.Ending.Kind != tasks.Answered ||
		!strings.HasPrefix(st.Task.Thread, "slack/") {
		t.Errorf("%+v", st)
	}
}
