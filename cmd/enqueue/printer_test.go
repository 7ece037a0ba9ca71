package main

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	p := progress{submitted: began}
	for _, step := range []struct {
		event agent.Event
		after time.Duration
		want  string
	}{
		{agent.Event{Kind: agent.Taken}, 5 * time.Second, "waiting · 5s"},
		{agent.Event{Kind: agent.Started, Time: began.Add(10 * time.Second)}, 9 * time.Second, "0s · thinking"},
		{agent.Event{Kind: agent.Text}, 80 * time.Second, "1m10s · writing"},
		{
			agent.Event{Kind: agent.Used, CostUSD: 0.001, Usage: &agent.Usage{Input: 90}},
			80 * time.Second,
			"1m10s · 90 tokens · under $0.01 · writing",
		},
		{
			agent.Event{Kind: agent.Used, CostUSD: 1.5, Usage: &agent.Usage{Input: 900, CacheRead: 50}},
			80 * time.Second, "1m10s · 950 tokens · $1.50 · writing",
		},
		{
			agent.Event{Kind: agent.ToolUse, ToolID: "a", Text: "A\x1b[2J"},
			80 * time.Second,
			"1m10s · 950 tokens · $1.50 · A",
		},
		{
			agent.Event{Kind: agent.ToolUse, ToolID: "b", Text: "B"},
			80 * time.Second,
			"1m10s · 950 tokens · $1.50 · 2 tools: B",
		},
		{agent.Event{Kind: agent.ToolResult, ToolID: "b"}, 80 * time.Second, "1m10s · 950 tokens · $1.50 · A"},
		// on another machine
		{
			agent.Event{Kind: agent.Started, Time: began.Add(time.Minute)},
			80 * time.Second,
			"1m10s · 950 tokens · $1.50 · thinking",
		},
		{agent.Event{Kind: tasks.Asked}, 80 * time.Second, "1m10s · 950 tokens · $1.50 · waiting for an answer"},
		{
			agent.Event{Kind: agent.Used, CostUSD: 2, Usage: &agent.Usage{Input: 2_340_000}},
			80 * time.Second,
			"1m10s · 2.3M tokens · $2.00 · waiting for an answer",
		},
		{agent.Event{Kind: agent.TurnEnd}, 2*time.Hour + 10*time.Second, "2h · 2.3M tokens · $2.00"},
	} {
		p.update(sent(t, step.event))
		if got := p.line(began.Add(step.after)); got != step.want {
			t.Errorf("after %s it is %q, want %q", step.event.Kind, got, step.want)
		}
	}
}
