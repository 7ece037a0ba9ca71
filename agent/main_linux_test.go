package agent

import (
	"bufio"
	"cmp"
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
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
)

// self is this program's file, which plays the CLI of most tests.
var self, _ = os.Executable()

// TestMain lets the test binary play every part: keeper, fake CLI, server of tools, and a worker that gets killed.
func TestMain(m *testing.M) {
	if filepath.Base(self) == "forgetful" { // a program without KeeperMain, whatever its arguments
		os.Exit(forgetfulMain())
	}
	if filepath.Base(self) == "hanging" { // a keeper that does not answer
		os.Exit(hangingMain())
	}
	KeeperMain()
	switch mode := os.Getenv("AGENT_TEST_MODE"); mode {
	case "": // with errand-keeper, as installed; the tests of package keeper have it re-executed
		if err := agenttest.BuildKeeper(context.Background(), filepath.Dir(self)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	case "sleep":
		_, _ = io.Copy(io.Discard, os.Stdin) // /dev/null: returns at once
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		select {}
	case "burn":
		os.Exit(burnMain())
	case "orphan":
		os.Exit(orphanMain())
	case "worker":
		os.Exit(workerMain())
	case "mcp":
		os.Exit(mcpMain())
	case "ordinary":
		os.Exit(ordinaryMain())
	case "layered":
		os.Exit(layeredMain())
	case "replaced":
		os.Exit(replacedMain())
	case "forbidden":
		os.Exit(forbiddenMain())
	case "exposed":
		os.Exit(exposedMain())
	case "send":
		os.Exit(sendMain())
	case "share":
		os.Exit(shareMain())
	case "segment":
		os.Exit(segmentMain())
	case "spoil":
		os.Exit(spoilMain())
	case "replay":
		os.Exit(replayMain())
	default:
		if awkward, ok := strings.CutPrefix(mode, "hostile "); ok {
			os.Exit(hostileMain(awkward))
		}
		if hanging, ok := strings.CutPrefix(mode, "try "); ok {
			os.Exit(tryMain(hanging))
		}
		os.Exit(fakeCLI(mode))
	}
}

// fakeCLI speaks just enough of the CLI's protocol to misbehave in one chosen way.
func fakeCLI(mode string) int {
	if strings.Contains(mode, "ignore-term") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	}
	if path := os.Getenv("AGENT_TEST_ALIVE"); path != "" {
		alive, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return 90
		}
		if strings.Contains(mode, "escape") {
			escape(alive, nil)                 // carries the run's marker
			escape(alive, []string{"PATH=/x"}) // does not
		}
		if strings.Contains(mode, "marked") {
			escape(alive, nil)
		}
		_, _ = alive.WriteString("x") // all are there
		defer alive.Close()
	}
	if strings.Contains(mode, "save") {
		saveOnTerm()
	}
	say := func(v any) {
		line, _ := json.Marshal(v)
		_, _ = os.Stdout.Write(append(line, '\n'))
	}
	type m = map[string]any
	switch {
	case strings.Contains(mode, "exit-2"):
		fmt.Fprintln(os.Stderr, "error: unknown option '--x'")
		return 2
	case strings.Contains(mode, "print"):
		fmt.Print(os.Getenv("AGENT_TEST_PRINTED"))
		return 1
	case strings.Contains(mode, "exit-0"):
		return 0
	case strings.Contains(mode, "die"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var prompts []string
	var said []string
	idle := func() {
		for _, id := range said {
			say(m{"type": "command_lifecycle", "command_uuid": id, "state": "completed", "session_id": "s"})
		}
		said = nil
		say(m{"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "s"})
	}
	result := func(text string) {
		say(m{
			"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1,
			"total_cost_usd": 0.25, "session_id": "s", "terminal_reason": "completed",
		})
	}
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil {
			if strings.Contains(mode, "never-exit") {
				select {}
			}
			return 0
		}
		var l struct {
			Type      string `json:"type"`
			UUID      string `json:"uuid"`
			RequestID string `json:"request_id"`
			Request   struct {
				Subtype string `json:"subtype"`
				System  string `json:"appendSystemPrompt"`
			} `json:"request"`
			Response struct {
				RequestID string `json:"request_id"`
				Subtype   string `json:"subtype"`
				Error     string `json:"error"`
				Response  struct {
					Behavior string          `json:"behavior"`
					Message  string          `json:"message"`
					Input    json.RawMessage `json:"updatedInput"`
				} `json:"response"`
			} `json:"response"`
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		}
		if json.Unmarshal(raw, &l) != nil {
			return 91
		}
		switch l.Type {
		case "control_request":
			if strings.Contains(mode, "mute") {
				continue
			}
			if strings.Contains(mode, "refuse") {
				say(m{"type": "control_response", "response": m{
					"subtype": "error", "request_id": l.RequestID, "error": "no thanks",
				}})
				continue
			}
			say(m{"type": "control_response", "response": m{
				"subtype": "success", "request_id": l.RequestID, "response": m{},
			}})
			if l.Request.Subtype == "end_session" {
				return 1
			}
			if strings.Contains(mode, "deaf") {
				select {}
			}
		case "control_response":
			r := l.Response
			result(fmt.Sprintf("%s %s %s%s %s", r.Subtype, r.Response.Behavior, r.Response.Message, r.Error,
				r.Response.Input))
			idle()
		case "user":
			say(m{"type": "command_lifecycle", "command_uuid": l.UUID, "state": "started", "session_id": "s"})
			said = append(said, l.UUID)
			say(m{
				"type": "system", "subtype": "init", "session_id": "s", "model": "fake-1",
				"claude_code_version": "2.1.332",
			})
			prompt := l.Message.Content
			prompts = append(prompts, prompt)
			switch {
			case strings.Contains(mode, "late") && len(prompts) == 1: // rests with a message on its way in
				_, _ = in.Peek(1)
				result("one")
				idle()
			case strings.Contains(mode, "closed-ears"): // it says that it lives, and takes nothing any more
				_ = os.Stdin.Close()
				select {}
			case strings.Contains(mode, "again") && len(prompts) == 2: // begun while the host was being asked for more
				say(m{"type": "system", "subtype": "session_state_changed", "state": "running"})
				say(m{"type": "stream_event", "event": m{
					"type": "content_block_delta", "delta": m{"type": "text_delta", "text": "begun."},
				}})
				_, _ = in.Peek(1) // until the other side hangs up or asks
				result("two")
				idle()
			case strings.Contains(mode, "freeze"):
				say(m{"type": "system", "subtype": "session_state_changed", "state": "running"})
				select {}
			case strings.Contains(mode, "structured"):
				r := m{
					"type": "result", "subtype": "success", "is_error": false, "result": prompt, "num_turns": 1,
					"session_id": "s",
				}
				if strings.Contains(mode, "willing") && strings.Contains(prompt, "StructuredOutput") {
					r["structured_output"] = m{"grade": 7}
				}
				say(r)
				idle()
			case strings.Contains(mode, "pair") && len(prompts) < 2: // the answer is to both
			case strings.Contains(mode, "pair"):
				result(strings.Join(prompts, "+"))
				idle()
			case strings.Contains(mode, "fatal") && len(prompts) == 2:
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			case strings.Contains(mode, "withdraw"):
				say(m{
					"type": "control_request", "request_id": "q1",
					"request": m{"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1", "input": m{}},
				})
				say(m{"type": "control_cancel_request", "request_id": "q1"})
				result("never mind")
				idle()
			case strings.Contains(mode, "hang"):
				fmt.Fprintln(os.Stderr, "hanging")
				say(m{
					"type": "assistant", "session_id": "s",
					"message": m{
						"id": "m1", "model": "fake-1", "content": []m{{"type": "text", "text": "half an ans"}},
					},
				})
			case strings.Contains(mode, "ask"):
				say(m{
					"type": "control_request", "request_id": "q1",
					"request": m{
						"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1",
						"input": m{"command": prompt},
					},
				})
			case strings.Contains(mode, "odd"):
				say(m{"type": "control_request", "request_id": "q1", "request": m{"subtype": "make_coffee"}})
			case strings.Contains(mode, "script"):
				_, _ = os.Stdout.WriteString(prompt + "\n")
				idle()
			case strings.Contains(mode, "shell"):
				out, err := exec.Command("/bin/bash", "-c", prompt).CombinedOutput()
				result(fmt.Sprintf("%s%v", out, err))
				idle()
			case strings.Contains(mode, "big"):
				_, _ = fmt.Fprintf(os.Stdout,
					`{"type":"user","session_id":"s","tool_use_result":{"originalFile":"%s"}}`+"\n",
					strings.Repeat("x", 6<<20))
				_, _ = os.Stdout.WriteString("not json\n\x00\xff\xfe\n")
				say(m{"type": "novelty", "x": 1})
				result("after the big line")
				idle()
			case strings.Contains(mode, "no-idle"):
				result("said it")
			case strings.Contains(mode, "env"):
				env, _ := os.ReadFile("/proc/self/environ")
				args, _ := os.ReadFile("/proc/self/cmdline")
				key, _ := io.ReadAll(io.LimitReader(os.NewFile(3, "key"), 100))
				result(strings.ReplaceAll(string(env)+"\n"+string(args), "\x00", "\n") + "\nKEY " +
					strings.ToUpper(string(key)))
				idle()
			default:
				result("echo: " + prompt)
				idle()
			}
		}
	}
}

// escape starts a process in a new session that ignores TERM, like a daemon.
func escape(alive *os.File, env []string) {
	if env == nil {
		env = os.Environ()
	}
	cmd := exec.Command("/proc/self/exe")
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

// workerMain runs one task until it is killed.
func workerMain() int {
	if _, err := MakePrivate(); err != nil { // as in production: starting a keeper must still work
		return 1
	}
	r, err := New(Config{
		CLI: os.Getenv("AGENT_TEST_CLI"), LogDir: os.Getenv("AGENT_TEST_DIR") + "/logs", Grace: time.Second,
		Sandbox: Sandbox(os.Getenv("AGENT_TEST_SANDBOX")), Credential: Credential{APIKey: os.Getenv("AGENT_TEST_KEY")},
		// a file more to remove
		Servers: []MCPServer{{Name: "x", Type: ServerHTTP, URL: "http://127.0.0.1:9", Profiles: []Profile{Read}}},
		Env: map[string]string{
			"AGENT_TEST_MODE":  cmp.Or(os.Getenv("AGENT_TEST_CLI_MODE"), "mute-hang-escape-ignore-term-never-exit"),
			"AGENT_TEST_ALIVE": os.Getenv("AGENT_TEST_ALIVE"),
		},
	})
	if err != nil {
		return 1
	}
	if limit, err := time.ParseDuration(os.Getenv("AGENT_TEST_SILENT")); err == nil {
		r.silentLimit = limit
	}
	res, err := r.Run(context.Background(), Spec{
		ID: os.Getenv("AGENT_TEST_RUN"), Dir: os.Getenv("AGENT_TEST_DIR"), Prompt: Message{Text: "x"}, Profile: Read,
	}, &host{})
	if err != nil || os.WriteFile(os.Getenv("AGENT_TEST_DIR")+"/result",
		fmt.Append(nil, res.Outcome, " ", res.Error.Class), 0o600) != nil {
		return 2
	}
	return 0
}

// layeredMain runs a script with a layer as a private worker does.
func layeredMain() int {
	if _, err := MakePrivate(); err != nil {
		return 1
	}
	dir := os.Getenv("AGENT_TEST_DIR")
	r, err := New(Config{CLI: "/bin/false", LogDir: dir + "/logs", Sandbox: SandboxBwrap})
	if err != nil {
		return 1
	}
	s, err := r.Script(context.Background(), Script{
		ID: "layered", Dir: dir, Line: "cat ~/tool; echo changed >~/tool",
		Environment: Environment{Layers: []Layer{{Lower: dir + "/lower", Changes: dir + "/changes"}}},
	})
	fmt.Print(s.Outcome, " ", s.Output, err)
	return 0
}

// forgetfulMain tries to run a task, and notes beside the program that it was started.
func forgetfulMain() int {
	started, err := os.OpenFile(self+".starts", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	_, _ = started.WriteString("x")
	dir := filepath.Dir(self)
	r, err := New(Config{CLI: "/bin/false", LogDir: dir})
	if err != nil {
		return 1
	}
	_, err = r.Run(context.Background(), Spec{
		ID: "forgetful", Dir: dir, Prompt: Message{Text: "x"}, Profile: Read,
	}, &host{})
	fmt.Print(err)
	return 0
}

// hangingMain says that it was started, and ends when its test does: what it says then fills the pipe of the test.
func hangingMain() int {
	started, err := os.OpenFile(self+".started", os.O_WRONLY, 0)
	if err != nil {
		return 1
	}
	signal.Ignore(syscall.SIGTERM)
	for err == nil {
		_, err = started.Write(make([]byte, 4096))
	}
	return 1
}

// replacedMain runs a task after its own program was replaced by something else.
func replacedMain() int {
	program := os.Args[0]
	if os.Remove(program) != nil || os.WriteFile(program, []byte("not a program"), 0o700) != nil {
		return 1
	}
	r, err := New(Config{
		CLI: "/proc/self/exe", LogDir: os.Getenv("AGENT_TEST_DIR"), Env: map[string]string{"AGENT_TEST_MODE": "talk"},
	})
	if err != nil {
		return 1
	}
	res, err := r.Run(context.Background(), Spec{
		ID: os.Getenv("AGENT_TEST_ID"), Dir: "/", Prompt: Message{Text: "hello"}, Profile: Read,
	}, &host{})
	fmt.Print(res.Outcome, " ", res.Text)
	if err != nil {
		return 1
	}
	return 0
}
