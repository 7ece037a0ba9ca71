package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

type m = map[string]any

// say writes a line of output.
func say(v m) {
	line, _ := json.Marshal(v)
	_, _ = os.Stdout.Write(append(line, '\n'))
}

// cli speaks just enough of the CLI's protocol to misbehave in one chosen way.
type cli struct {
	mode    string
	in      *bufio.Reader
	alive   *os.File // held by every process of the run
	prompts []string
	said    []string // IDs of messages whose turn has not ended
}

// has reports whether the mode has a word.
func (c *cli) has(word string) bool { return strings.Contains(c.mode, word) }

func playCLI(mode string) int {
	c := &cli{mode: mode, in: bufio.NewReaderSize(os.Stdin, 1<<20)}
	if c.has("ignore-term") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	}
	if c.has("save") {
		saveOnTerm()
	}
	if path := os.Getenv("AGENT_TEST_ALIVE"); path != "" {
		alive, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return 90
		}
		if c.has("escape") {
			escape(alive, nil)                 // carries the run's marker
			escape(alive, []string{"PATH=/x"}) // does not
		}
		if c.has("marked") {
			escape(alive, nil)
		}
		if c.alive = alive; !c.has("mute") {
			_, _ = alive.WriteString("x") // all are there
		}
		defer alive.Close()
	}
	switch {
	case c.has("exit-2"):
		fmt.Fprintln(os.Stderr, "error: unknown option '--x'")
		return 2
	case c.has("print"):
		fmt.Print(os.Getenv("AGENT_TEST_PRINTED"))
		return 1
	case c.has("exit-0"):
		return 0
	case c.has("die"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return c.converse()
}

// input is a line that the CLI reads.
type input struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		Subtype  string `json:"subtype"`
		Error    string `json:"error"`
		Response struct {
			Behavior string          `json:"behavior"`
			Message  string          `json:"message"`
			Input    json.RawMessage `json:"updatedInput"`
		} `json:"response"`
	} `json:"response"`
	Message struct {
		Content string `json:"content"`
	} `json:"message"`
}

// converse answers until the end of the input.
func (c *cli) converse() int {
	for {
		raw, err := c.in.ReadBytes('\n')
		if err != nil {
			if c.has("never-exit") {
				hang()
			}
			return 0
		}
		var l input
		if json.Unmarshal(raw, &l) != nil {
			return 91
		}
		switch l.Type {
		case "control_request":
			if c.control(l) {
				return 1
			}
		case "control_response":
			r := l.Response
			c.result(fmt.Sprintf("%s %s %s%s %s", r.Subtype, r.Response.Behavior, r.Response.Message, r.Error,
				r.Response.Input))
			c.idle()
		case "user":
			say(m{"type": "command_lifecycle", "command_uuid": l.UUID, "state": "started", "session_id": "s"})
			c.said = append(c.said, l.UUID)
			say(m{
				"type": "system", "subtype": "init", "session_id": "s", "model": "fake-1",
				"claude_code_version": "2.1.332",
			})
			c.prompts = append(c.prompts, l.Message.Content)
			if !c.misbehave(l.Message.Content) {
				c.answer(l.Message.Content)
			}
		}
	}
}

// control answers a control request, and reports whether the session is over.
func (c *cli) control(l input) (over bool) {
	switch {
	case c.has("mute"):
		_, _ = c.alive.WriteString("x") // all are there, and it was asked something
		return false
	case c.has("refuse"):
		say(m{"type": "control_response", "response": m{
			"subtype": "error", "request_id": l.RequestID, "error": "no thanks",
		}})
		return false
	}
	say(m{"type": "control_response", "response": m{
		"subtype": "success", "request_id": l.RequestID, "response": m{},
	}})
	if l.Request.Subtype == "end_session" {
		return true
	}
	if c.has("deaf") {
		hang()
	}
	return false
}

// misbehave does what the mode says in place of a turn that is answered, and reports whether there was such a thing.
func (c *cli) misbehave(prompt string) bool {
	switch {
	case c.has("late") && len(c.prompts) == 1: // rests with a message on its way in
		_, _ = c.in.Peek(1)
		c.result("one")
		c.idle()
	case c.has("closed-ears"): // it says that it lives, and takes nothing any more
		_ = os.Stdin.Close()
		hang()
	case c.has("again") && len(c.prompts) == 2: // begun while the host was being asked for more
		say(m{"type": "system", "subtype": "session_state_changed", "state": "running"})
		say(m{"type": "stream_event", "event": m{
			"type": "content_block_delta", "delta": m{"type": "text_delta", "text": "begun."},
		}})
		_, _ = c.in.Peek(1) // until the other side hangs up or asks
		c.result("two")
		c.idle()
	case c.has("freeze"):
		say(m{"type": "system", "subtype": "session_state_changed", "state": "running"})
		hang()
	case c.has("pair") && len(c.prompts) < 2: // the answer is to both
	case c.has("fatal") && len(c.prompts) == 2:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case c.has("withdraw"):
		c.ask(m{})
		say(m{"type": "control_cancel_request", "request_id": "q1"})
		c.result("never mind")
		c.idle()
	case c.has("hang"):
		fmt.Fprintln(os.Stderr, "hanging")
		say(m{
			"type": "assistant", "session_id": "s",
			"message": m{"id": "m1", "model": "fake-1", "content": []m{{"type": "text", "text": "half an ans"}}},
		})
	case c.has("ask"):
		c.ask(m{"command": prompt})
	case c.has("odd"):
		say(m{"type": "control_request", "request_id": "q1", "request": m{"subtype": "make_coffee"}})
	default:
		return false
	}
	return true
}

// answer is a turn.
func (c *cli) answer(prompt string) {
	defer c.idle()
	switch {
	case c.has("structured"):
		r := m{
			"type": "result", "subtype": "success", "is_error": false, "result": prompt, "num_turns": 1,
			"session_id": "s",
		}
		if c.has("willing") && strings.Contains(prompt, "StructuredOutput") {
			r["structured_output"] = m{"grade": 7}
		}
		say(r)
	case c.has("pair"):
		c.result(strings.Join(c.prompts, "+"))
	case c.has("script"):
		_, _ = os.Stdout.WriteString(prompt + "\n")
	case c.has("shell"):
		out, err := exec.CommandContext(context.Background(), "/bin/bash", "-c", prompt).CombinedOutput()
		c.result(fmt.Sprintf("%s%v", out, err))
	case c.has("big"):
		_, _ = fmt.Fprintf(os.Stdout,
			`{"type":"user","session_id":"s","tool_use_result":{"originalFile":"%s"}}`+"\n", strings.Repeat("x", 6<<20))
		_, _ = os.Stdout.WriteString("not json\n\x00\xff\xfe\n")
		say(m{"type": "novelty", "x": 1})
		c.result("after the big line")
	case c.has("no-idle"):
		c.result("said it")
	case c.has("env"):
		env, _ := os.ReadFile("/proc/self/environ")
		args, _ := os.ReadFile("/proc/self/cmdline")
		key, _ := io.ReadAll(io.LimitReader(os.NewFile(3, "key"), 100))
		c.result(strings.ReplaceAll(string(env)+"\n"+string(args), "\x00", "\n") + "\nKEY " +
			strings.ToUpper(string(key)))
	default:
		c.result("echo: " + prompt)
	}
}

// ask asks whether Bash may be called.
func (c *cli) ask(arguments m) {
	say(m{
		"type": "control_request", "request_id": "q1",
		"request": m{"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1", "input": arguments},
	})
}

// result ends a turn.
func (c *cli) result(text string) {
	say(m{
		"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1,
		"total_cost_usd": 0.25, "session_id": "s", "terminal_reason": "completed",
	})
}

// idle says that the session rests, except in the mode that never does.
func (c *cli) idle() {
	if c.has("no-idle") {
		return
	}
	for _, id := range c.said {
		say(m{"type": "command_lifecycle", "command_uuid": id, "state": "completed", "session_id": "s"})
	}
	c.said = nil
	say(m{"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "s"})
}

// escape starts a process in a new session that ignores TERM, like a daemon.
func escape(alive *os.File, env []string) {
	if env == nil {
		env = os.Environ()
	}
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = append(env, "AGENT_TEST_MODE=sleep")
	cmd.ExtraFiles = []*os.File{alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() != nil {
		os.Exit(92)
	}
	_ = cmd.Process.Release()
}

// saveOnTerm saves a session when it is asked to end, as the CLI does.
func saveOnTerm() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() {
		<-asked
		dir := filepath.Join(os.Getenv("CLAUDE_CONFIG_DIR"), "projects", "x")
		if os.MkdirAll(dir, 0o700) != nil {
			os.Exit(93)
		}
		for _, arg := range os.Args {
			if id, ok := strings.CutPrefix(arg, "--session-id="); ok &&
				os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte("{\"uuid\":\"saved\"}\n"), 0o600) == nil {
				os.Exit(143)
			}
		}
		os.Exit(94)
	}()
}
