package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

// People who mention the bot. Ann is the person of the two stories.
const (
	bea  = "U0BEA"
	carl = "U0CARL"
)

// part is a task of the cast: someone asks for it, and it stays in, or ends in, one state.
type part struct {
	user, name, prompt string
	channel            string // empty: the channel of the two stories
	turns              []modelfake.Turn
	becomes            string // what the task has become, for the terminal
	stays              bool   // it keeps running
	reached            func(status) bool
}

// status is the part of a task's JSON that the demo reads.
type status struct {
	State     string           `json:"state"`
	Why       string           `json:"why"`
	Questions []tasks.Question `json:"questions"`
	Ending    *tasks.Ending    `json:"ending"`
	Posted    bool             `json:"posted"`
}

// ended reports whether a task has ended in this way and its final message is posted.
func (s status) ended(kind tasks.EndingKind) bool {
	return s.Ending != nil && s.Ending.Kind == kind && s.Posted
}

// pace is the time between two pieces of an answer of the model.
const pace = 15 * time.Millisecond

func tool(name string, input any) []modelfake.ToolCall {
	return []modelfake.ToolCall{{Name: name, Input: input}}
}

// cast lists the tasks, in the order in which they are asked for. One runs in a repository at once, and one that waits
// for a person leaves its place, so the last one waits for the one before.
func cast() []part {
	return []part{
		{
			user: bea, name: "Bea", prompt: "add a test for totals that end in .29",
			turns: []modelfake.Turn{
				{
					Pace: pace, Text: "I will put it beside the code.",
					Tools: tool("Write", map[string]any{"file_path": "invoice/total_test.go", "content": test}),
					Usage: modelfake.Usage{Input: 87_000, Output: 1_200},
				},
				{
					Pace: pace,
					Text: "I added `TestTotalKeepsCents`. It fails today, because `Total` " +
						"truncates: it gets 28 and wants 29.",
				},
			},
			becomes: "is answered, with a draft pull request", reached: func(s status) bool {
				return s.ended(tasks.Answered)
			},
		},
		{
			user: carl, name: "Carl", prompt: "rewrite the history of every invoice since 2019",
			turns: []modelfake.Turn{
				{
					Pace: pace, Text: "There are many of them.", Usage: modelfake.Usage{Input: 2_510_000},
					Tools: tool("Glob", map[string]any{"pattern": "**/*.go"}),
				},
				{
					Pace: pace, Text: "I am not done yet.", Usage: modelfake.Usage{Input: 2_510_000},
					Tools: tool("Glob", map[string]any{"pattern": "**/*.md"}),
				},
			},
			becomes: "failed: its budget is used up", reached: func(s status) bool { return s.ended(tasks.Failed) },
		},
		{
			user: carl, name: "Carl", prompt: "store totals as integer cents",
			turns: []modelfake.Turn{
				{
					Pace: pace, Text: "Two callers still expect a float.",
					Tools: tool("mcp__errand__ask_user", map[string]any{
						"question": "Two callers outside of this repository use `Total`. Shall I keep " +
							"it and add `Cents` beside it?",
						"options": []string{"Keep Total", "Change Total"},
					}),
				},
				{Pace: pace, Text: "I added `Cents` and kept `Total`."},
			},
			becomes: "asks Carl a question", reached: func(s status) bool { return len(s.Questions) > 0 },
		},
		{
			user: bea, name: "Bea", prompt: "find the flaky test in invoice", turns: endless(), stays: true,
			becomes: "runs", reached: func(s status) bool { return s.State == "running" },
		},
		{
			user: person, name: "Ann", prompt: "explain the rounding in the README",
			turns:   []modelfake.Turn{{Pace: pace, Text: "I added a paragraph."}},
			becomes: "waits for its turn", reached: func(s status) bool { return s.State == "waiting" && s.Why != "" },
		},
	}
}

// endless are the turns of a run that goes on for two hours, the longest that a run takes.
func endless() []modelfake.Turn {
	turns := []modelfake.Turn{{
		Pace: pace, Text: "I will run the tests of each package before I change anything.",
		Tools: tool("Bash", map[string]any{"command": "ls -R . | head -20", "description": "List the packages"}),
		Usage: modelfake.Usage{Input: 42_000, Output: 300},
	}}
	for range 12 {
		turns = append(turns, modelfake.Turn{Tools: tool("Bash", map[string]any{
			"command":     "sh scripts/test.sh ./invoice 590",
			"description": "Run the tests again and again to find the flaky one", "timeout": 600_000,
		})})
	}
	return turns
}

const test = "package invoice\n\nimport \"testing\"\n\nfunc TestTotalKeepsCents(t *testing.T) {\n" +
	"\tif got := Total([]float64{0.29}); got != 29 {\n\t\tt.Errorf(\"Total = %d\", got)\n\t}\n}\n"

// inhabit leaves tasks in the other states of the console: stopped, failed, running, asking, waiting and paused, one
// with a draft pull request, a second review of the pull request, and a conversation.
func (s *scene) inhabit(ctx context.Context, sys *system, t *teller) error {
	t.await("the task that Carl stops")
	if err := s.stopped(ctx, sys, t); err != nil {
		return err
	}
	t.await("the answer in the chat")
	if err := s.conversation(ctx, sys, t); err != nil {
		return err
	}
	t.await("the task that reaches the usage limit")
	if err := s.paused(ctx, sys, t); err != nil {
		return err
	}
	t.await("the push to the pull request")
	second, err := s.push(ctx, sys, t) // the review would wait for the usage limit, too
	if err != nil {
		return err
	}
	for _, p := range cast() {
		if p.stays && second != "" {
			t.say("github", "the push is reviewed half a minute after it, unless another one follows")
			t.await("the review of the push")
			if err := sys.until(ctx, second, func(s status) bool { return s.ended(tasks.Answered) }); err != nil {
				return fmt.Errorf("wait for the second review: %w", err)
			}
			t.say("github", "the pull request is reviewed again")
			second = ""
		}
		t.await("the task of " + p.name)
		s.model.Answer(p.prompt, p.turns...)
		id, _, err := s.ask(ctx, sys, p)
		if err != nil {
			return err
		}
		if err := sys.until(ctx, id, p.reached); err != nil {
			return fmt.Errorf("wait until the task %q %s: %w", p.prompt, p.becomes, err)
		}
		t.say("slack", "%s: @errand %s\n                 → %s", p.name, p.prompt, p.becomes)
	}
	t.say("errand", "the console shows a task in each state")
	return nil
}

// ask posts the mention of a part and returns the task and the message.
func (s *scene) ask(ctx context.Context, sys *system, p part) (id, ts string, err error) {
	if ts, err = s.slack.Mention(ctx, slackfake.Message{
		Channel: cmp.Or(p.channel, channel), User: p.user, Text: p.prompt,
	}); err != nil {
		return "", "", fmt.Errorf("mention the bot: %w", err)
	}
	id, err = sys.next(ctx, "slack")
	return id, ts, err
}

// stopped lets a person stop their task.
func (s *scene) stopped(ctx context.Context, sys *system, t *teller) error {
	p := part{user: carl, name: "Carl", prompt: "delete all unused code"}
	working := make(chan struct{}, 1)
	s.model.Answer(p.prompt,
		modelfake.Turn{
			Text:  "I will look for code without callers.",
			Tools: []modelfake.ToolCall{{Name: "Grep", Input: map[string]string{"pattern": "^func"}}},
			Usage: modelfake.Usage{Input: 31_000, Output: 300},
		},
		modelfake.Turn{Started: working, Text: "There is one package with one function.", Hang: true})
	id, ts, err := s.ask(ctx, sys, p)
	if err == nil {
		select {
		case <-working:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, err = s.slack.Mention(ctx, slackfake.Message{Channel: channel, ThreadTS: ts, User: carl, Text: "stop"})
	}
	if err == nil {
		err = sys.until(ctx, id, func(s status) bool { return s.ended(tasks.Cancelled) })
	}
	if err != nil {
		return fmt.Errorf("stop the task %q: %w", p.prompt, err)
	}
	t.say("slack", "%s: @errand %s\n                 → stopped by %s", p.name, p.prompt, p.name)
	return nil
}

// paused lets a task reach the usage limit of the model's account. The limit holds all starts of the fleet, so the demo
// then does what the documents tell an operator who has raised the plan: this task waits for its time, others start.
func (s *scene) paused(ctx context.Context, sys *system, t *teller) error {
	if s.redis == nil {
		t.say("errand", "redis-server is not on PATH, so no task is paused at a usage limit")
		return nil
	}
	p := part{user: bea, name: "Bea", prompt: "make the checkout usable with the keyboard", channel: shop}
	reset := strconv.FormatInt(time.Now().Add(72*time.Minute).Unix(), 10)
	s.model.Answer(p.prompt,
		modelfake.Turn{
			Text:  "I will look at the form first.",
			Tools: []modelfake.ToolCall{{Name: "Read", Input: map[string]string{"file_path": "checkout.html"}}},
		},
		modelfake.Turn{
			Status: http.StatusTooManyRequests, Message: "This request would exceed your account's rate limit.",
			Times: 1, Text: "Every field can now be reached with the Tab key.",
			Header: http.Header{
				"Anthropic-Ratelimit-Unified-Status":               {"rejected"},
				"Anthropic-Ratelimit-Unified-Representative-Claim": {"five_hour"},
				"Anthropic-Ratelimit-Unified-Reset":                {reset},
			},
		})
	id, ts, err := s.ask(ctx, sys, p)
	if err == nil {
		err = sys.until(ctx, id, func(s status) bool {
			return s.State == "waiting" && strings.Contains(s.Why, "limit")
		})
	}
	if err == nil {
		err = s.slack.Wait(ctx, func(f *slackfake.Server) bool {
			return slices.ContainsFunc(f.Messages(shop, ts), func(m slackfake.Message) bool {
				return strings.Contains(string(m.Blocks)+m.Text, tasks.Paused)
			})
		})
	}
	if err == nil {
		err = s.liftHolds(ctx)
	}
	if err != nil {
		return fmt.Errorf("pause the task %q: %w", p.prompt, err)
	}
	t.say("slack",
		"%s: @errand %s\n                 → is paused: the usage limit of the model is "+
			"reached; then the plan is upgraded", p.name, p.prompt)
	return nil
}

// liftHolds makes the fleet forget what it has learnt about its credential.
func (s *scene) liftHolds(ctx context.Context) error {
	opt, err := redis.ParseURL(s.redis.URL())
	if err != nil {
		return fmt.Errorf("read the address of Redis: %w", err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	keys, err := client.Keys(ctx, "errand:credential:*").Result()
	if err == nil {
		err = client.Del(ctx, keys...).Err()
	}
	if err != nil {
		return fmt.Errorf("lift the hold of the credential: %w", err)
	}
	return nil
}

// push pushes to the pull request of the story and returns the task of the second review, which leaves time for
// another push before it starts.
func (s *scene) push(ctx context.Context, sys *system, t *teller) (id string, err error) {
	changed := strings.Replace(after, "sum := 0.0", "sum := 0.0 // euros", 1)
	_, err = s.github.PushPR(ctx, repo, 1, map[string]string{"invoice/total.go": changed})
	if err != nil {
		return "", fmt.Errorf("push to the pull request: %w", err)
	}
	t.say("github", "ann pushed to %s#1", repo)
	return sys.next(ctx, "github")
}

// conversation sends a message to the chat and reads the answer to its end.
func (s *scene) conversation(ctx context.Context, sys *system, t *teller) error {
	const message = "Which packages does payments have?"
	s.model.Answer(message, modelfake.Turn{
		Text:  "One: `invoice`, which adds up the lines of an invoice.",
		Usage: modelfake.Usage{Input: 23_000, Output: 200},
	})
	body, err := json.Marshal(map[string]string{"message": message, "repo": repo})
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	resp, err := sys.send(ctx, http.MethodPost, "/api/chat", strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := sys.until(ctx, resp.Header.Get("Errand-Task"), func(s status) bool {
		return s.ended(tasks.Answered)
	}); err != nil {
		return fmt.Errorf("wait for the answer in the chat: %w", err)
	}
	t.say("chat", "%s\n                 → answered", message)
	return nil
}

// until asks for a task until it has reached a state.
func (s *system) until(ctx context.Context, id string, reached func(status) bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := s.get(ctx, "/api/tasks/"+id)
		if err != nil {
			return err
		}
		var now status
		err = json.NewDecoder(resp.Body).Decode(&now)
		_ = resp.Body.Close()
		if err != nil {
			return fmt.Errorf("read task %s: %w", id, err)
		}
		if reached(now) {
			return nil
		}
		if now.Ending != nil && now.Posted {
			return fmt.Errorf("task %s ended as %s: %s", id, now.Ending.Kind, now.Ending.Reason)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
