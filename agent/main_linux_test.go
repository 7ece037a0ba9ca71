package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
)

// self is this program's file.
var self, _ = os.Executable()

// fake plays the CLI of most tests: see agenttest/fakecli.
var fake = filepath.Join(filepath.Dir(self), "fakecli")

// TestMain lets the test binary play a keeper, a server of tools, and a worker that gets killed.
func TestMain(m *testing.M) {
	if filepath.Base(self) == "forgetful" { // a program without KeeperMain, whatever its arguments
		os.Exit(forgetfulMain())
	}
	KeeperMain()
	switch mode := os.Getenv("AGENT_TEST_MODE"); mode {
	case "": // with errand-keeper, as installed; the tests of package keeper have it re-executed
		if err := agenttest.Build(context.Background(), filepath.Dir(self), "cmd/errand-keeper",
			"internal/agenttest/fakecli"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
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
	case "exposed":
		os.Exit(exposedMain())
	default:
		if hanging, ok := strings.CutPrefix(mode, "try "); ok {
			os.Exit(tryMain(hanging))
		}
		fmt.Fprintln(os.Stderr, "unknown mode", mode)
		os.Exit(1)
	}
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

// replacedMain runs a task after its own program was replaced by something else.
func replacedMain() int {
	program := os.Args[0]
	if os.Remove(program) != nil || os.WriteFile(program, []byte("not a program"), 0o700) != nil {
		return 1
	}
	r, err := New(Config{
		CLI: os.Getenv("AGENT_TEST_CLI"), LogDir: os.Getenv("AGENT_TEST_DIR"),
		Env: map[string]string{"AGENT_TEST_MODE": "talk"},
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
