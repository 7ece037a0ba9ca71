package browser

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// scene is a fleet at work: tasks in every state, and workers of every kind.
type scene struct {
	*console
	running, asking, waiting, answered, failed, long, reviewed string // IDs

	claim *store.Claim // of the running task
}

// answer is what a good answer looks like.
const answer = "`Total` multiplies a float by 100 and then **truncates**: 0.29 becomes 28.999…, so a cent is lost.\n\n" +
	"```go\nreturn int(math.Round(sum * 100)) // invoice/total.go:9\n```\n\n" +
	"| invoice | was | is |\n|---|--:|--:|\n| 7 | 12.33 | 12.34 |\n| 12 | 88.10 | 88.10 |\n\n" +
	"What is left to do:\n\n1. Add up cents as integers, which would fix the cause.\n2. Compare with [the ledger](https://ledger.acme.example/7).\n"

// cli is a healthy worker's report about its CLI.
var cli = map[string]any{
	"ok": true, "version": "2.1.332", "path": "/usr/local/bin/claude", "logged_in": true, "method": "api_key",
	"sandbox": "bwrap", "gateway": true, "private": true,
}

func newScene(c *console) *scene {
	c.Helper()
	s := &scene{console: c}
	c.alive(store.Worker{
		ID: "mill-1", Host: "mill-1.acme.example", Version: "v1.4.0", Pid: 7, Slots: 4, Running: 2, Memory: 11 << 29,
		Started: time.Now().Add(-26 * time.Hour),
	}, cli)
	c.alive(store.Worker{
		ID: "mill-2", Host: "mill-2.acme.example", Version: "v1.4.0", Pid: 9, Slots: 4, Draining: true, Memory: 5 << 30,
		Started: time.Now().Add(-26 * time.Hour),
	}, cli)
	c.alive(store.Worker{
		ID: "mill-3", Host: "mill-3.acme.example", Version: "v1.4.0", Pid: 7, Slots: 4, Memory: 3 << 30,
		Started: time.Now().Add(-3 * time.Minute),
	},
		map[string]any{
			"ok": false, "version": "2.1.332", "problem": "the CLI has no credential",
			"remedy": "Set ANTHROPIC_API_KEY in the worker's environment, and start it again.",
		})

	s.long = s.ended("slack", "Ann Lee", "acme/a-repository-with-a-name-that-goes-on-and-on-and-on",
		"why-does-https://ci.acme.example/builds/1234567890/jobs/0987654321/artifacts/0123456789abcdef0123456789abcdef/log.txt fail? "+
			strings.Repeat("It is long, and it says so in many words. ", 40), 30*time.Hour, time.Minute,
		tasks.Ending{Kind: tasks.Cancelled, By: "Ann Lee"})
	s.reviewed = s.ended("github", "dana", "acme/payments",
		"Review pull request acme/payments#41: Round totals instead of truncating them", 26*time.Hour,
		4*time.Minute, tasks.Ending{
			Kind: tasks.Answered, Result: agent.Result{
				Text: "One finding.", CostUSD: 0.42, Turns: 9, Duration: 4 * time.Minute, Model: "claude-opus-4-8",
			},
		})
	s.failed = s.ended("slack", "Bo Chen", "acme/payments", "bump the Go version everywhere and make CI green",
		9*time.Hour, 35*time.Minute, tasks.Ending{
			Kind: tasks.Failed, Reason: "The model's credit balance is too low: ask the person who pays for it.",
			Result: agent.Result{
				Partial: "I have bumped `go.mod` and **two of three** workflows. The third one builds an image that",
				CostUSD: 3.1, Duration: 35 * time.Minute,
				Model: "claude-opus-4-8", Usage: agent.Usage{Input: 9000, CacheRead: 2_100_000, Output: 48_000},
			},
		})
	s.ended("chat", "Console", "", "how many Fridays are there in 2027?", 5*time.Hour, 9*time.Second, tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Text: "There are 53.", CostUSD: 0.01},
	})
	s.ended("slack", "Ann Lee", "acme/web", "translate the checkout to Portuguese", 3*time.Hour, 2*time.Hour,
		tasks.Ending{Kind: tasks.TimedOut, Limit: "2h", Result: agent.Result{CostUSD: 7.25}})
	s.answered = s.theAnswered()
	s.asking = s.theAsking()
	s.running = s.theRunning()
	s.waiting = s.submit(func(t *tasks.Task) {
		t.Source, t.Kind, t.Class, t.Actor, t.Repo, t.Thread = "github", "review", tasks.Review, "dana", "acme/web",
			"github/acme/web#107/review"
		t.Prompt = "Review pull request acme/web#107: Load fonts from our own domain"
	})
	s.aged(s.waiting, 40*time.Second, -1, -1)
	return s
}

// ended is a task that ended that long ago.
func (s *scene) ended(source, actor, repo, prompt string, ago, took time.Duration, e tasks.Ending) string {
	s.Helper()
	id := s.submit(func(t *tasks.Task) {
		t.Source, t.Actor, t.Repo, t.Prompt = source, actor, repo, prompt
		if source == "chat" {
			t.Kind, t.Thread = "chat", "chat/fridays"
		}
	})
	c := s.Claim(id)
	if _, err := c.Spend(s.Context(), store.Expense{
		USD: e.Result.CostUSD, Model: "claude-opus-4-8",
		Tokens: store.Tokens{Input: 40_000, Output: 900},
	}); err != nil {
		s.Fatal(err)
	}
	s.End(c, e)
	s.aged(id, ago, ago-2*time.Second, ago-2*time.Second-took)
	return id
}

// theAnswered is a task with an answer that has it all.
func (s *scene) theAnswered() string {
	id := s.submit(func(t *tasks.Task) {
		t.Repo, t.Prompt = "acme/payments", "why is the total of invoice 7 one cent short?"
		t.Thread = "slack/T0ACME/C0PAYMENTS/1795341597.000100"
	})
	c := s.Claim(id)
	s.Append(c, at(time.Now().Add(-12*time.Minute),
		agent.Event{Kind: agent.Started, Text: "claude-opus-4-8"},
		agent.Event{
			Kind: agent.Thinking,
			Text: "A cent is a matter of rounding. I should look at how totals are computed before I guess.",
		},
		agent.Event{Kind: agent.Text, Text: "Let me look at how totals are computed: `Total`, and *who calls it*."},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Grep", ToolID: "g", Text: "Searching for func Total",
			Input: raw(map[string]string{"pattern": "func Total"}),
		},
		agent.Event{Kind: agent.ToolResult, ToolID: "g", Text: "invoice/total.go:6:func Total(lines []float64) int {"},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Agent", ToolID: "a", Text: "Asking a sub-agent: find the callers",
			Input: raw(map[string]string{"prompt": "Find the callers of Total."}),
		},
		agent.Event{
			Kind: agent.ToolUse, Parent: "a", Tool: "Bash", ToolID: "b",
			Text:  "Running grep -rn 'Total(' --include=*.go .",
			Input: raw(map[string]string{"command": "grep -rn 'Total(' --include=*.go ."}),
		},
		agent.Event{
			Kind: agent.ToolResult, Parent: "a", ToolID: "b",
			Text: "./invoice/print.go:31:\tcents := Total(lines)\n./ledger/book.go:12:\treturn invoice.Total(l)",
		},
		agent.Event{
			Kind: agent.Text, Parent: "a",
			Text: "There are two callers: `invoice/print.go:31` and `ledger/book.go:12`.",
		},
		agent.Event{Kind: agent.ToolResult, ToolID: "a", Text: "There are two callers."},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Bash", ToolID: "t", Text: "Running go test ./invoice",
			Input: raw(map[string]string{"command": "go test ./invoice"}),
		},
		agent.Event{
			Kind: agent.ToolResult, ToolID: "t",
			Text:  "\x1b[31m--- FAIL: TestTotal (0.00s)\x1b[0m\n    total_test.go:14: got 1233, want 1234\nFAIL",
			Error: true,
		},
		agent.Event{Kind: agent.Text, Text: answer},
	)...)
	if _, err := c.Spend(s.Context(), store.Expense{
		USD: 0.37, Model: "claude-opus-4-8", Tokens: store.Tokens{Input: 65_200, Output: 2300},
	}); err != nil {
		s.Fatal(err)
	}
	s.changed(c, false)
	s.End(c, tasks.Ending{
		Kind: tasks.Answered, Changed: tasks.Diffstat{Files: 5, Added: 16, Removed: 5}, Result: agent.Result{
			Text: answer, CostUSD: 0.37, Turns: 6, Duration: 83 * time.Second, Model: "claude-opus-4-8",
			Usage: agent.Usage{Input: 4200, CacheRead: 61_000, Output: 2300},
		},
		Published: &tasks.Published{
			Work: tasks.Work{
				Repo: "acme/payments", Branch: "errand/invoice-7", Base: "main", Title: "Round totals",
				Verification: &tasks.Verification{Ran: []tasks.Verified{
					{Command: "go test ./...", Outcome: agent.Done, Duration: 41 * time.Second},
					{
						Command: "golangci-lint run", Outcome: agent.Failed, ExitCode: 1,
						Said:     "invoice/total.go:7:9: floats are compared (floatcompare)\n1 issue",
						Duration: 7 * time.Second,
					},
				}},
			},
			PullRequest: forge.PullRequestRef{Number: 42, URL: "https://github.example/acme/payments/pull/42"},
		},
	})
	s.log(id, "# errand "+id+"\n# started 2026-11-02T09:58:00Z\n"+
		strings.Repeat("09:58:01.250 $ go test ./invoice\n             --- FAIL: TestTotal (0.00s)\n", 30))
	s.aged(id, 13*time.Minute, 12*time.Minute, 12*time.Minute-83*time.Second)
	return id
}

// theAsking is a task whose agent waits for an answer.
func (s *scene) theAsking() string {
	id := s.submit(func(t *tasks.Task) {
		t.Repo, t.Prompt = "acme/web", "make the checkout's button the colour of the brand"
	})
	c := s.Claim(id)
	s.Append(c, at(time.Now().Add(-90*time.Second),
		agent.Event{Kind: agent.Started, Text: "claude-opus-4-8"},
		agent.Event{Kind: agent.Text, Text: "There are two colours that could be meant."},
		agent.Event{Kind: "asked", Text: "Which of the two is the colour of the brand?"},
	)...)
	s.ask(c, tasks.Question{
		Key: "k", Text: "Which of the two is the colour of the brand?",
		Options: []string{"Teal, as in the logo", "Navy, as in the footer"}, Asked: time.Now(),
		Until: time.Now().Add(14 * time.Minute),
	})
	s.aged(id, 2*time.Minute, 95*time.Second, -1)
	return id
}

// theRunning is a task in the middle of it.
func (s *scene) theRunning() string {
	id := s.submit(func(t *tasks.Task) {
		t.Actor, t.Repo, t.Prompt = "Bo Chen", "acme/payments", "fix the flaky test in ledger, and say why it was flaky"
		t.Options.Model, t.Options.Limit, t.Options.MaxUSD = "opus", 2*time.Hour, 5
	})
	first, err := s.Store.Claim(s.Context(), id, 0, "mill-2")
	if err == nil {
		err = first.Return(s.Context(), store.Wait{Why: "its worker is shutting down"})
	}
	if err != nil {
		s.Fatal(err)
	}
	c := s.Claim(id)
	s.Append(c, at(time.Now().Add(-3*time.Minute),
		agent.Event{Kind: agent.Started, Text: "claude-opus-4-8"},
		agent.Event{
			Kind: agent.Text,
			Text: "I will run the test until it fails, with the race detector:\n\n- first alone,\n- then with its **neighbours**.",
		},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Bash", ToolID: "1",
			Text: "Running go test -race -count=200 -run TestBook ./ledger",
			Input: raw(map[string]string{
				"command": "go test -race -count=200 -run TestBook ./ledger", "description": "Run the test 200 times",
			}),
		},
		agent.Event{Kind: agent.ToolResult, ToolID: "1", Text: "ok  \tacme.example/payments/ledger\t41.870s"},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Bash", ToolID: "v", Text: "Running go vet ./ledger/...",
			Input: raw(map[string]string{"command": "go vet ./ledger/..."}),
		},
		agent.Event{
			Kind: agent.ToolResult, ToolID: "v", Text: "ledger/book.go:31: result of time.Truncate call not used",
			Error: true,
		},
		agent.Event{Kind: "absorbed", Tool: "Dana", ToolID: s.answered, Text: "it fails on Mondays, if that helps"},
		agent.Event{Kind: agent.Thinking, Text: "On Mondays: the week begins. Something truncates to the week."},
		agent.Event{Kind: agent.Used, CostUSD: 0.21, Usage: &agent.Usage{Input: 1900, CacheRead: 38_000, Output: 1100}},
		agent.Event{
			Kind: agent.ToolUse, Tool: "Bash", ToolID: "2",
			Text:  "Running faketime 'next monday' go test -count=50 ./ledger",
			Input: raw(map[string]string{"command": "faketime 'next monday' go test -count=50 ./ledger"}),
		},
	)...)
	s.changed(c, true)
	s.claim = c
	s.aged(id, 4*time.Minute, 3*time.Minute, -1)
	return id
}

// changed stores what a run has changed.
func (s *scene) changed(c *store.Claim, live bool) {
	s.Helper()
	file := func(name, kind string, added, removed int, hunks string) workspace.FileChange {
		return workspace.FileChange{
			Name: name, Kind: kind, Added: added, Removed: removed,
			Patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n" + hunks,
		}
	}
	changes := tasks.NewChanges(workspace.Comparison{Files: []workspace.FileChange{
		file("docs/rounding.md", "A", 4, 0,
			"@@ -0,0 +1,4 @@\n+# Rounding\n+\n+Totals are rounded half away from zero, as **the ledger** does it, and no longer truncated, which lost a cent in about one invoice of two hundred.\n+See `invoice/total.go`.\n"),
		{Name: "docs/rounding.png", Kind: "A", Binary: true},
		file("invoice/total.go", "M", 5, 2,
			"@@ -1,5 +1,8 @@\n package invoice\n \n-// Total returns the total in cents.\n+import \"math\"\n+\n+// Total returns the total in cents, rounded half away from zero.\n func Total(lines []float64) int {\n \tsum := 0.0\n@@ -12,4 +15,5 @@ func Total(lines []float64) int {\n \t\tsum += l\n \t}\n-\treturn int(sum * 100) // 0.29 becomes 28\n+\tconst cents = 100\n+\treturn int(math.Round(sum * cents)) // 0.29 becomes 29\n }\n"),
		file("invoice/total_test.go", "M", 3, 1,
			"@@ -11,3 +11,5 @@ func TestTotal(t *testing.T) {\n-\tif got := Total([]float64{0.28}); got != 28 {\n+\tfor want, line := range map[int]float64{28: 0.28, 29: 0.29} {\n+\t\tif got := Total([]float64{line}); got != want {\n+\t\t\tt.Errorf(\"total of %v = %d, want %d\", line, got, want)\n \t}\n }\n"),
		{
			Name: "ledger/book/weeks.go", From: "ledger/weeks.go", Kind: "R", Added: 4, Removed: 2,
			Patch: "diff --git a/x b/x\n@@ -3,4 +3,6 @@\n-const Week = 7\n-var first = time.Sunday // \u202e tricky \u2066\n+// Week is the number of days in a week; see https://en.example/an/address/that/is/quite/long/and/has/no/blank/in/it/at/all/so/that/it/must/break\n+const Week = 7\n+\n+var first = time.Monday\n \n\\ No newline at end of file\n",
		},
	}}, strings.Clone)
	changes.Live = live
	var picture bytes.Buffer
	page := image.NewGray(image.Rect(0, 0, 1280, 800))
	for i := range page.Pix {
		page.Pix[i] = byte(i % 1280 / 5)
	}
	if err := png.Encode(&picture, page); err != nil {
		s.Fatal(err)
	}
	for name, data := range map[string][]byte{
		tasks.DiffLog: changes.Encode(), tasks.FileLogs + "invoice after.png": picture.Bytes(),
		tasks.FileLogs + "coverage-of-all-packages-and-their-tests.html": []byte("<p>"),
	} {
		if err := c.SaveLatest(s.Context(), name, data); err != nil {
			s.Fatal(err)
		}
	}
}

// at gives events their times, some seconds apart.
func at(t time.Time, events ...agent.Event) []agent.Event {
	for i := range events {
		events[i].Time = t.Add(time.Duration(i) * 4 * time.Second)
	}
	return events
}

// aged lets time pass: it writes into a task's record how long ago it was created, started and ended, where that is not
// negative. What asynq knows of it becomes what a worker would have made of it.
func (s *scene) aged(id string, created, started, ended time.Duration) {
	s.Helper()
	s.redis(func(ctx context.Context, r *redis.Client) error {
		key, class := "errand:task:"+id, s.Status(id).Task.Class
		queue := "asynq:{" + class + "}:"
		for name, ago := range map[string]time.Duration{"created": created, "started": started, "ended": ended} {
			if ago < 0 {
				continue
			}
			if err := r.HSet(ctx, key, name, fmt.Sprint(time.Now().Add(-ago).UnixMicro())).Err(); err != nil {
				return err
			}
		}
		if started >= 0 { // of its runs the last one; those before had an hour each
			s := s.Status(id)
			var runs []string
			for i, one := range s.Runs {
				begun := time.Now().Add(-started - time.Duration(len(s.Runs)-1-i)*time.Hour)
				line := fmt.Sprintf("%d\t%s", begun.UnixMicro(), one.Worker)
				if one.Why != "" {
					line += fmt.Sprintf("\t%d\t%s", begun.Add(40*time.Minute).UnixMicro(), one.Why)
				}
				runs = append(runs, line)
			}
			if err := r.HSet(ctx, key, "runs", strings.Join(runs, "\n")).Err(); err != nil {
				return err
			}
		}
		switch {
		case ended >= 0:
			if err := r.LRem(ctx, queue+"pending", 0, id).Err(); err != nil {
				return err
			}
			return r.Del(ctx, queue+"t:"+id).Err()
		case started >= 0:
			if err := r.LRem(ctx, queue+"pending", 0, id).Err(); err != nil {
				return err
			}
			if err := r.LPush(ctx, queue+"active", id).Err(); err != nil {
				return err
			}
			return r.HSet(ctx, queue+"t:"+id, "state", "active").Err()
		}
		return nil
	})
}
