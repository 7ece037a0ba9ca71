package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// ordersFile holds the orders of a review, because errand writes the prompt of a review.
const ordersFile = "chaos.txt"

// goOnWork is the duration of a turn without orders, which continues an interrupted one.
const goOnWork = 300 * time.Millisecond

// turn receives a batch of messages and answers them together.
func (c *cli) turn(batch []input) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.mu.Lock()
	c.abort = cancel
	c.mu.Unlock()
	orders, query := c.takeUp(batch)
	if !query {
		c.complete(batch)
		return
	}
	c.out.state("running")
	c.out.say(object{
		"type": "system", "subtype": "init", "model": "claude-opus-5-5", "claude_code_version": "2.1.332",
		"tools": []string{"Bash"},
	})
	tokens := c.said.open()
	if len(tokens) == 0 {
		tokens = c.said.last() // asked to continue after it had finished
	}
	id := fmt.Sprintf("msg_%d_%d", os.Getpid(), c.said.turns())
	c.out.say(object{"type": "stream_event", "event": object{"type": "message_start", "message": object{"id": id}}})
	c.piece("Working on " + strings.Join(tokens, " "))
	if len(orders) == 0 {
		pause(ctx, goOnWork)
	}
	for _, o := range orders {
		c.work(ctx, o)
	}
	var trouble *failure
	if ctx.Err() == nil {
		trouble = c.model.ask(ctx, c.said.entries)
	}
	c.mu.Lock()
	c.abort = nil
	c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		c.result(object{
			"subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
			"errors": []string{"[ede_diagnostic] interrupted"},
		})
	case trouble != nil:
		trouble.tell(c.out)
		c.result(trouble.result())
	default:
		answer := script.Answer(tokens)
		c.out.say(object{"type": "assistant", "message": object{
			"id": id, "model": "claude-opus-5-5", "content": []object{{"type": "text", "text": "Done."}},
		}})
		c.out.say(object{"type": "stream_event", "event": object{"type": "message_stop"}})
		c.said.add(entry{Type: "assistant", Text: answer, Tokens: tokens})
		result := object{
			"subtype": "success", "is_error": false, "result": answer, "terminal_reason": "completed",
			"stop_reason": "end_turn",
		}
		if slices.ContainsFunc(batch, input.review) {
			result["structured_output"] = object{"findings": []object{}, "summary": answer}
		}
		c.result(result)
	}
	c.complete(batch)
}

// review reports whether a message requests a review, which is answered with findings.
func (m input) review() bool {
	return strings.HasPrefix(string(m.Message.Content), "Review pull request")
}

// takeUp marks messages as received: in the transcript, then at the witness, then to the host. query is false if none
// needs an answer.
func (c *cli) takeUp(batch []input) (orders []script.Orders, query bool) {
	for _, m := range batch {
		text := string(m.Message.Content)
		if m.Query != nil && !*m.Query {
			c.said.add(entry{Type: "history", UUID: m.UUID, Text: text})
			c.out.lifecycle(m.UUID, "started")
			continue
		}
		query = true
		found := script.Parse(text)
		if m.review() {
			// if missing, the message has no token, and the harness finds that no CLI received it
			file, _ := os.ReadFile(ordersFile)
			found = script.Parse(string(file))
		}
		var tokens []string
		for _, o := range found {
			tokens = append(tokens, o.Token)
		}
		c.said.add(entry{Type: "user", UUID: m.UUID, Text: text, Tokens: tokens})
		for _, o := range found {
			r, err := c.witness.tell(script.Word{Token: o.Token, Message: m.UUID})
			if err != nil {
				os.Exit(1) // the harness is gone
			}
			o.Crash = o.Crash && r.Before == 0
			orders = append(orders, o)
		}
		c.out.lifecycle(m.UUID, "started")
	}
	if !c.resumed {
		return orders, query
	}
	// Unanswered messages of an earlier process belong to this one.
	for _, token := range c.said.open() {
		if !slices.ContainsFunc(orders, func(o script.Orders) bool { return o.Token == token }) {
			if _, err := c.witness.tell(script.Word{Token: token}); err != nil {
				os.Exit(1)
			}
		}
	}
	return orders, query
}

// work follows the orders of one message.
func (c *cli) work(ctx context.Context, o script.Orders) {
	if o.Stubborn {
		c.stubborn.Store(true)
	}
	if o.Tool {
		leaveTool()
	}
	pause(ctx, o.Work/2)
	if o.Crash {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	if o.Ask || o.Big {
		c.useTool(ctx, o)
	}
	c.piece(", still at " + o.Token)
	pause(ctx, o.Work/2)
}

// useTool calls a tool, with a permission request and with an output of 2 MiB if the orders say so.
func (c *cli) useTool(ctx context.Context, o script.Orders) {
	id := "toolu_" + o.Token
	call := object{"command": "make " + o.Token}
	c.out.say(object{"type": "assistant", "message": object{
		"id": "msg_" + id, "model": "claude-opus-5-5",
		"content": []object{{"type": "tool_use", "id": id, "name": "Bash", "input": call}},
	}})
	if o.Ask {
		c.askPermission(ctx, id, call)
	}
	output := object{"type": "user", "message": object{
		"role": "user", "content": []object{{"type": "tool_result", "tool_use_id": id, "content": "made"}},
	}}
	if o.Big {
		output["tool_use_result"] = object{"stdout": strings.Repeat("a line of a long output\\n", 2<<20/24)}
	}
	c.out.say(output)
}

// askPermission asks the host and waits for any answer.
func (c *cli) askPermission(ctx context.Context, use string, call object) {
	answered := make(chan struct{})
	c.mu.Lock()
	c.requests++
	request := fmt.Sprintf("ask-%d", c.requests)
	c.permits[request] = answered
	c.mu.Unlock()
	c.out.say(object{
		"type": "control_request", "request_id": request,
		"request": object{"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": use, "input": call},
	})
	select {
	case <-answered:
	case <-ctx.Done():
		c.out.say(object{"type": "control_cancel_request", "request_id": request})
	}
}

func (c *cli) piece(text string) {
	c.out.say(object{"type": "stream_event", "event": object{
		"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": text},
	}})
}

// result ends a turn. Costs and usage are totals of the conversation.
func (c *cli) result(line object) {
	turns := c.said.turns()
	line["type"], line["num_turns"], line["total_cost_usd"] = "result", 1, 0.001*float64(turns)
	line["modelUsage"] = object{"claude-opus-5-5": object{"inputTokens": 100 * turns, "outputTokens": 20 * turns}}
	c.failed, _ = line["is_error"].(bool)
	c.results++
	c.out.say(line)
}

func (c *cli) complete(batch []input) {
	for _, m := range batch {
		c.out.lifecycle(m.UUID, "completed")
	}
}

// pause sleeps and returns early if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
