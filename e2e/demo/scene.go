package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver"
)

// scene holds the parts of the demo: one channel, one repository, and one model with scripted answers.
type scene struct {
	slack  *slackfake.Server
	github *githubfake.Server
	model  *modelfake.Server
	redis  *redisserver.Server // nil: the worker keeps everything in memory
	yaml   string
}

const (
	channel  = "C0PAYMENTS"
	person   = "U0ANN"
	repo     = "acme/payments"
	shop     = "C0SHOP" // the channel of another repository
	question = "why is the total of invoice 7 one cent short?"
	before   = "package invoice\n\n// Total adds up the lines of an invoice.\nfunc Total(lines []float64) int {\n" +
		"\tsum := 0.0\n\tfor _, l := range lines {\n\t\tsum += l\n\t}\n\treturn int(sum * 100)\n}\n"
	after = "package invoice\n\nimport \"math\"\n\n" +
		"// Total adds up the lines of an invoice.\nfunc Total(lines []float64) int {\n" +
		"\tsum := 0.0\n\tfor _, l := range lines {\n\t\tsum += l\n\t}\n\treturn int(math.Round(sum * 100))\n}\n"
)

// workspace has the people of the demo, whose names the console and the posts show.
var workspace = slackfake.Config{
	Channels: []slackfake.Channel{{ID: channel, Name: "payments"}, {ID: shop, Name: "shop"}},
	Users:    []slackfake.User{{ID: person, Name: "Ann"}, {ID: bea, Name: "Bea"}, {ID: carl, Name: "Carl"}},
}

func newScene(ctx context.Context, yaml string) (*scene, error) {
	text := "repositories:\n  " + repo + ":\n    trusted: true\n  acme/shop: {}\n" +
		"channels:\n  " + channel + ":\n    repository: " + repo + "\n  " + shop + ":\n    repository: acme/shop\n" +
		"limits:\n  repository: 1\nbudgets:\n  task: 5\n"
	if err := os.WriteFile(yaml, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the demo's errand.yaml: %w", err)
	}
	gh, err := githubfake.New(githubfake.Config{})
	if err != nil {
		return nil, fmt.Errorf("start the fake GitHub: %w", err)
	}
	s := &scene{slack: slackfake.New(workspace), github: gh, model: modelfake.New(), yaml: yaml}
	if _, err := gh.CreateRepo("acme", "payments", map[string]string{
		"invoice/total.go": before,
		"go.mod":           "module acme.example/payments\n\ngo 1.26\n",
		"CLAUDE.md":        "Money is counted in cents.\n",
		"scripts/test.sh":  "for i in $(seq 1 $2); do echo \"ok  acme.example/payments/$1  case $i\"; sleep 1; done\n",
	}); err != nil {
		s.close()
		return nil, fmt.Errorf("create the demo's repository: %w", err)
	}
	checkout := map[string]string{"checkout.html": "<form>\n<div onclick=\"pay()\">Pay</div>\n</form>\n"}
	if _, err := gh.CreateRepo("acme", "shop", checkout); err != nil {
		s.close()
		return nil, fmt.Errorf("create the demo's other repository: %w", err)
	}
	if path, ok := redisserver.Find(); ok {
		if s.redis, err = redisserver.Start(ctx, redisserver.Config{Path: path}); err != nil {
			s.close()
			return nil, err
		}
	}
	s.lines()
	return s, nil
}

func (s *scene) close() {
	s.slack.Close()
	s.github.Close()
	s.model.Close()
	if s.redis != nil {
		_ = s.redis.Stop(context.Background()) // nothing in it is needed any more
	}
}

// lines scripts the model's answers. The tools in them really run, in a real clone.
func (s *scene) lines() {
	s.model.Answer("",
		modelfake.Turn{Pace: pace, Text: "I am the demo's model and only have scripted answers. You said: {{prompt}}"})
	s.model.Answer(question,
		modelfake.Turn{
			Text: "Let me look at how totals are computed.", Pace: pace,
			Tools: tool("Grep", map[string]string{"pattern": "func Total", "output_mode": "files_with_matches"}),
			Usage: modelfake.Usage{Input: 61_000, Output: 700},
		},
		modelfake.Turn{Tools: tool("Bash", map[string]string{
			"command": "cat invoice/total.go", "description": "read it",
		})},
		modelfake.Turn{
			Pace: pace,
			Text: "`Total` multiplies a float by 100 and then **truncates**: 0.29 becomes 28.999…, so a cent is " +
				"lost.\n\n```go\nreturn int(math.Round(sum * 100)) // invoice/total.go:9\n```\n\nRounding fixes " +
				"invoice 7; adding up cents as integers would fix the cause.",
		})
	s.model.Answer("Review pull request",
		modelfake.Turn{
			Text: "I will read the change and its surroundings.", Pace: pace,
			Tools: tool("Glob", map[string]string{"pattern": "**/*.go"}),
			Usage: modelfake.Usage{Input: 112_000, Output: 1_900},
		},
		modelfake.Turn{Tools: tool("Grep", map[string]string{"pattern": "math.Round", "output_mode": "content"})},
		modelfake.Turn{Pace: pace, Tools: []modelfake.ToolCall{{Name: "StructuredOutput", Input: map[string]any{
			"summary": "The change does what its title says, but not for long invoices.",
			"findings": []map[string]any{{
				"id": "float-sum", "severity": "major", "confidence": "high", "path": "invoice/total.go", "line": 11,
				"original": "\treturn int(math.Round(sum * 100))",
				"claim":    "The sum itself is still a float, so a long invoice drifts.",
				"evidence": "Each addition rounds; over some thousand lines that is more than half a cent before " +
					"`math.Round` sees it. Add up integer cents instead.",
			}},
		}}}})
	s.model.Answer("Try to refute", modelfake.Turn{Pace: pace, Tools: []modelfake.ToolCall{{
		Name: "StructuredOutput", Input: map[string]any{
			"verdicts": []map[string]any{{
				"id": "float-sum", "verdict": "holds", "reason": "The sum is a float64 in every caller.",
			}},
		},
	}}})
}

// environment returns the whole configuration of the worker.
func (s *scene) environment(state string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(),
		"ERRAND_CONFIG=" + s.yaml, "ERRAND_STATE_DIR=" + state, "ERRAND_HTTP_ADDR=127.0.0.1:0",
		"ERRAND_WORKER_ADDR=127.0.0.1:0", "ANTHROPIC_BASE_URL=" + s.model.URL(),
		"CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-demo-token", "SLACK_API_URL=" + s.slack.APIURL(),
		"SLACK_BOT_TOKEN=xoxb-test", "SLACK_SIGNING_SECRET=slack-secret", "GITHUB_API_URL=" + s.github.APIURL(),
		"GITHUB_URL=" + s.github.URL(), "GITHUB_TOKEN=ghp_test", "GITHUB_WEBHOOK_SECRET=github-secret",
	}
	if s.redis != nil {
		env = append(env, "REDIS_URL="+s.redis.URL())
	}
	// The agents only follow the scripts, so the demo may also run as root, and without a sandbox.
	env = append(env, "ERRAND_ALLOW_ROOT=true")
	if !sandboxWorks() {
		env = append(env, "ERRAND_SANDBOX=none")
	}
	if cli := os.Getenv("ERRAND_CLAUDE"); cli != "" {
		env = append(env, "ERRAND_CLAUDE="+cli)
	}
	return env
}

// sandboxWorks makes the same check as the worker's start.
func sandboxWorks() bool {
	r, err := agent.New(agent.Config{LogDir: os.TempDir(), Sandbox: agent.SandboxBwrap})
	if err == nil {
		_, err = r.Protection(context.Background())
	}
	return err == nil
}

// mention posts a question in Slack and waits for the answer.
func (s *scene) mention(ctx context.Context, sys *system, t *teller) error {
	ts, err := s.slack.Mention(ctx, slackfake.Message{Channel: channel, User: person, Text: question})
	if err != nil {
		return fmt.Errorf("mention the bot: %w", err)
	}
	t.say("slack", "Ann: @errand %s", question)
	if err := sys.follow(ctx, "slack", t); err != nil {
		return err
	}
	var posted string
	err = s.slack.Wait(ctx, func(f *slackfake.Server) bool {
		for _, m := range f.Messages(channel, ts) {
			if m.BotID != "" && strings.Contains(string(m.Metadata), "final/") {
				posted = m.Text
			}
		}
		return posted != ""
	})
	if err != nil {
		return fmt.Errorf("wait for the answer in Slack: %w", err)
	}
	t.say("slack", "posted in the thread:\n%s", quote(posted))
	return nil
}

// pullRequest opens a pull request on GitHub and waits for its review.
func (s *scene) pullRequest(ctx context.Context, sys *system, t *teller) error {
	n, err := s.github.OpenPR(ctx, githubfake.PR{
		Repo: repo, Base: "main", Head: "round-totals", Title: "Round totals instead of truncating them",
		Body: "Fixes invoice 7.", User: "ann", Files: map[string]string{"invoice/total.go": after},
	})
	if err != nil {
		return fmt.Errorf("open a pull request: %w", err)
	}
	t.say("github", "ann opened %s#%d: Round totals instead of truncating them", repo, n)
	if err := sys.follow(ctx, "github", t); err != nil {
		return err
	}
	head, posted, state := s.github.Pulls(repo)[n-1].HeadSHA, "", ""
	err = s.github.Wait(ctx, func(f *githubfake.Server) bool {
		for _, c := range f.Comments(repo, n) {
			posted = c.Body
		}
		for _, st := range f.Statuses(repo, head) {
			state = st.State + ": " + st.Description
		}
		return posted != "" && strings.HasPrefix(state, "success")
	})
	if err != nil {
		return fmt.Errorf("wait for the review on GitHub: %w", err)
	}
	t.say("github", "commit status %s", state)
	for _, c := range s.github.ReviewComments(repo, n) {
		t.say("github", "posted at %s:%d:\n%s", c.Path, c.Line, quote(c.Body))
	}
	t.say("github", "posted on the pull request:\n%s", quote(posted))
	return nil
}

// hidden matches errand's marks in a posted text, which GitHub does not show.
var hidden = regexp.MustCompile(`<!--.*?-->\n`)

// quote indents a posted text.
func quote(s string) string {
	s = hidden.ReplaceAllString(s, "")
	return "                 │ " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n                 │ ")
}
