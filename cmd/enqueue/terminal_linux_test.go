package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/cmd/enqueue/internal/termtest"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// This binary is the command itself, the front door that `enqueue serve` starts, or what the guide starts, if argv[0] is
// one of these.
const (
	underTest      = "enqueue-under-test"
	doorUnderTest  = "front-door-under-test"
	startedByGuide = "worker" // the base of a path
)

func TestMain(m *testing.M) {
	if os.Args[0] == underTest {
		os.Exit(run(context.Background(), os.Args[1:], world{
			getenv: os.Getenv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, notify: notifySignals,
		}))
	}
	if os.Args[0] == doorUnderTest {
		c, err := assemble.Load(os.Getenv, config.RoleFrontdoor)
		if err == nil {
			err = assemble.ServeFrontDoor(context.Background(), c, os.Stdout, os.Stderr, assemble.Options{})
		}
		os.Exit(exitCode("", err, os.Stderr))
	}
	if filepath.Base(os.Args[0]) == startedByGuide {
		standIn()
	}
	os.Exit(m.Run())
}

// `enqueue serve` becomes the program worker, with its own process ID and environment.
func TestServe(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{t.TempDir(): "-front-door in 7, process ", "/nowhere": "start the program worker"} {
		script := "#!/bin/sh\necho \"$* in $NUMBER, process $$\"\n"
		if dir != "/nowhere" {
			if err := os.WriteFile(filepath.Join(dir, "worker"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			want += "PID"
		}
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "serve")
		cmd.Args[0], cmd.Env = underTest, []string{"PATH=" + dir, "NUMBER=7"}
		out, err := cmd.CombinedOutput()
		want = strings.ReplaceAll(want, "PID", fmt.Sprint(cmd.ProcessState.Pid()))
		if !strings.Contains(string(out), want) || (err == nil) != strings.HasPrefix(want, "-") {
			t.Errorf("PATH=%s: %v: %s", dir, err, out)
		}
	}
}

// console is a command on a pseudo-terminal.
type console struct {
	*testing.T
	vt     *termtest.VT
	master *os.File
	cmd    *exec.Cmd
	raw    strings.Builder // what was sent, for who has seen the end of it
	more   chan struct{}   // has one when something was printed; closed when printing has ended
}

// wide is enough for all that is said to people.
const wide = 120

// sit starts a command on a terminal. With stdout it goes there instead.
func (f *frontDoor) sit(columns uint16, stdout *os.File, args ...string) *console {
	f.Helper()
	master, slave := termtest.Open(f.T, columns)
	self, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	c := &console{
		T: f.T, vt: termtest.NewVT(f.T, int(columns)), master: master,
		cmd: exec.CommandContext(f.Context(), self, args...), more: make(chan struct{}, 1),
	}
	c.cmd.Args[0] = underTest
	c.cmd.Env = []string{"TERM=xterm", "TZ=UTC"}
	for name, value := range f.env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	if stdout != nil {
		c.cmd.Stdout = stdout
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		f.Fatal(err)
	}
	_ = slave.Close() // so that the end of the command is that of what it prints
	go c.read()
	f.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	return c
}

func (c *console) read() {
	defer close(c.more)
	b := make([]byte, 4096)
	for {
		n, err := c.master.Read(b)
		_, _ = c.vt.Write(b[:n])
		_, _ = c.raw.Write(b[:n])
		if err != nil {
			return // EIO: the other end is closed
		}
		select {
		case c.more <- struct{}{}:
		default:
		}
	}
}

// sees waits until a person sees something that fits, and gives it.
func (c *console) sees(pattern string) []string {
	c.Helper()
	re, limit := regexp.MustCompile(pattern), time.After(10*time.Minute)
	for open := true; ; {
		if m := re.FindStringSubmatch(c.vt.Visible()); m != nil {
			return m
		}
		if !open {
			c.Fatalf("the command has ended, and there is no match for %s in\n%s", pattern, c.vt.Visible())
		}
		select {
		case _, open = <-c.more:
		case <-limit:
			c.Fatalf("no match for %s in\n%s", pattern, c.vt.Visible())
		}
	}
}

// types presses keys.
func (c *console) types(keys string) {
	c.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.Fatal(err)
	}
}

// exits waits for the end of the command.
func (c *console) exits(code int) string {
	c.Helper()
	for range c.more { // to the last word
	}
	err := c.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		c.Fatal(err)
	}
	if got := c.cmd.ProcessState.ExitCode(); got != code {
		c.Errorf("exit %d, want %d:\n%s", got, code, c.vt.Visible())
	}
	return c.vt.Visible()
}

// ctrlC is what a terminal makes an interrupt of.
const ctrlC = "\x03"

func (c *console) task() string { return c.sees(`task (\S+), thread`)[1] }

// A conversation as a person sees it: text as it comes, a line for each tool, and a status line that is gone at the
// end.
func TestChatOnATerminal(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	s := f.sit(wide, nil, "chat", "--follow", "--thread", "t", "Hello")
	c := f.Claim(f.whole(s.task()))
	s.sees(`  waiting · \d+s`)
	f.Append(c, agent.Event{Kind: agent.Started, Text: "opus", Time: time.Now()},
		agent.Event{Kind: agent.Text, Text: "Let me"}, agent.Event{Kind: agent.Text, Text: " see"},
		agent.Event{Kind: agent.Used, CostUSD: 0.12, Usage: &agent.Usage{Input: 12_000, Output: 340}},
	)
	s.sees(`(?m)^Let me see$`) // no status line beside an incomplete line
	f.Append(c, agent.Event{Kind: agent.ToolUse, ToolID: "t1", Text: "Running go test \x1b[2J\x1b[H\x07 ./one ./two\n" +
		strings.Repeat("./and/so/on ", 10) + ""})
	s.sees(`(?m)^Let me see\n· Running go test \\x07 ./one ./two ./and/so/on .*…$\n  \d+s · 12.3k tokens · \$0.12 · Running go test .*…$`)
	f.Append(c, agent.Event{Kind: agent.ToolUse, ToolID: "t2", Text: "Reading x"},
		agent.Event{Kind: agent.ToolResult, ToolID: "t1", Text: "\x1b]0;pwned\x07boom", Error: true})
	s.sees(`(?m)^✗ boom\n  .* · Reading x$`)
	f.Append(c, agent.Event{Kind: agent.ToolResult, ToolID: "t2"},
		agent.Event{Kind: agent.Text, Text: "It works\x1b[3A.\n"}, agent.Event{Kind: agent.TurnEnd})
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		Text: "It works.", Duration: 3 * time.Second, CostUSD: 0.13,
	}})
	seen := s.exits(0)
	_, rest, _ := strings.Cut(seen, "\n") // the task
	call := term.Cut(`· Running go test \x07 ./one ./two `+strings.Repeat("./and/so/on ", 10), wide)
	want := "— started, opus\nLet me see\n" + call + "\n· Reading x\n✗ boom\nIt works.\nanswered · 3s · $0.13"
	if rest != want {
		t.Errorf("one sees\n%s\nwant\n%s", rest, want)
	}
}

// The first Ctrl-C asks, the second cancels and waits for what there is of an answer.
func TestCtrlCAsksAndThenCancels(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	s := f.sit(wide, nil, "chat", "--follow", "Hello")
	id := f.whole(s.task())
	c := f.Claim(id)
	f.Append(c, agent.Event{Kind: agent.Text, Text: "So far"})
	s.sees("So far")
	s.types(ctrlC)
	s.sees(`Ctrl-C again cancels the task · Enter leaves it running`)
	if got := f.Status(id).Cancel; got != "" {
		t.Errorf("one Ctrl-C cancels it, on behalf of %s", got)
	}
	s.types(ctrlC)
	s.sees(`cancelling the task; Ctrl-C again exits at once`)
	if got := f.Status(id).Cancel; got != "console" {
		t.Errorf("it is cancelled on behalf of %q", got)
	}
	f.Append(c, agent.Event{Kind: agent.Text, Text: ", and no further\n"})
	f.End(c, tasks.Ending{Kind: tasks.Cancelled, By: "console"})
	seen := s.exits(5)
	for _, want := range []string{", and no further\n", "cancelled\nStopped in the console."} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q is not in\n%s", want, seen)
		}
	}
}

func TestThirdCtrlCLeaves(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	s := f.sit(wide, nil, "chat", "--follow", "Hello")
	f.Claim(f.whole(s.task()))
	s.types(ctrlC)
	s.sees("Ctrl-C again cancels")
	s.types(ctrlC)
	s.sees("cancelling the task")
	s.types(ctrlC)
	if seen := s.exits(130); !strings.Contains(seen, "left; the task is being cancelled: `enqueue show") {
		t.Errorf("one sees\n%s", seen)
	}
}

// After the first Ctrl-C the user can leave; SIGTERM leaves without a question.
func TestLeavingATerminal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave func(*console)
		code  int
	}{
		"by Enter": {func(s *console) { s.types(ctrlC); s.sees("Enter leaves"); s.types("\n") }, 130},
		"by SIGTERM": {func(s *console) {
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				s.Fatal(err)
			}
		}, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t)
			s := f.sit(wide, nil, "logs", "-f", f.submit("Hello"))
			s.sees("waiting")
			test.leave(s)
			if seen := s.exits(test.code); !strings.Contains(strings.ReplaceAll(seen, "\n", ""),
				"left; the task continues: `enqueue logs -f") {
				t.Errorf("one sees\n%s", seen)
			}
		})
	}
}

// With the text in a file there is a status line on the terminal, and nothing of it in the file.
func TestChatIntoAFile(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	file, err := os.CreateTemp(t.TempDir(), "answer")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s := f.sit(wide, file, "chat", "--follow", "Hello")
	c := f.Claim(f.whole(s.task()))
	f.Append(c, agent.Event{Kind: agent.Started, Text: "opus", Time: time.Now()},
		agent.Event{Kind: agent.Text, Text: "4"})
	s.sees(`\ds · writing`)
	f.Append(c, agent.Event{Kind: agent.Text, Text: "2\n"})
	f.End(c, tasks.Ending{Kind: tasks.Answered})
	s.exits(0)
	b, err := os.ReadFile(file.Name())
	if err != nil || string(b) != "42\n" {
		t.Errorf("%v: the file has %q", err, b)
	}
}

// Colours are for terminals whose owner wants them.
func TestColoursOfATerminal(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.End(f.Claim(f.submit("Hello")), tasks.Ending{Kind: tasks.Failed})
	const red = "\x1b[31mfailed"
	s := f.sit(wide, nil, "list")
	s.exits(0)
	if !strings.Contains(s.raw.String(), red) {
		t.Errorf("it is not red: %q", s.raw.String())
	}
	f.env["NO_COLOR"] = "1"
	s = f.sit(wide, nil, "list")
	s.exits(0)
	if strings.Contains(s.raw.String(), "\x1b") {
		t.Errorf("NO_COLOR: %q", s.raw.String())
	}
	if _, out, _ := f.run("list"); strings.Contains(out, "\x1b") {
		t.Errorf("without a terminal: %q", out)
	}
}

// A terminal that can only print gets lines, and no orders.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.env["TERM"] = "dumb"
	s := f.sit(wide, nil, "chat", "--follow", "Hello")
	c := f.Claim(f.whole(s.task()))
	s.types(ctrlC)
	s.sees(`(?m)^(\^C)?Ctrl-C again cancels the task`)
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "42"}})
	seen := s.exits(0)
	if strings.Contains(seen, "waiting") || !strings.HasSuffix(seen, "\n42\nanswered") {
		t.Errorf("one sees\n%s", seen)
	}
}

// So does a table of numbers, of which none is cut: what things have cost is the last to go.
func TestCostsFitTheTerminal(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for width, want := range map[uint16]string{
		40: "DAY  COST   RUNS  TOKENS IN  OUT\nall  $0.00  0     0          0",
		30: "DAY  COST   RUNS  TOKENS IN\nall  $0.00  0     0",
		20: "DAY  COST   RUNS\nall  $0.00  0",
		12: "DAY  COST\nall  $0.00",
	} {
		if seen := f.sit(width, nil, "costs").exits(0); seen != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, seen, want)
		}
	}
}

// A list fits the terminal, whatever its width: columns that matter less go first, and then the ends of titles.
func TestListFitsTheTerminal(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := display.TaskID(f.submit("日本語 and much more than can be shown in a line of this width, of whatever it is about"))
	for width, want := range map[uint16]string{
		110: "ID       STATE    SOURCE  WHO  AGE  COST  TASK\n" + id +
			"  waiting  slack   ann  0s         日本語 and much more than can be shown in a line of this width, of…",
		60: "ID       STATE    WHO  AGE  COST  TASK\n" + id + "  waiting  ann  0s         日本語 and much more than…",
		46: "ID       STATE    AGE  TASK\n" + id + "  waiting  0s   日本語 and much more t…",
		// the ID stays whole, to be copied
		24: "ID\n  STATE    TASK\n" + id + "\n  waiting  日本語 and m…",
	} {
		seen := f.sit(width, nil, "list").exits(0)
		if seen = regexp.MustCompile(` \ds `).ReplaceAllString(seen, " 0s "); seen != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", width, seen, want)
		}
	}
}

// A terminal gets JSON without what it would obey; programs get the log as it came.
func TestRawLogOnATerminal(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	f.Claim(id)
	if err := os.WriteFile(filepath.Join(f.logs, id+".ndjson"),
		[]byte("{\"text\":\"\u009b31m\u202e\"}\n\x1b]0;title\a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := f.sit(wide, nil, "logs", "--json", id)
	c.exits(0)
	if got, want := strings.ReplaceAll(c.raw.String(), "\r\n", "\n"), `{"text":"\u009b31m\u202e"}`+"\n"+
		`\u001b]0;title\u0007`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A diff is for programs as it is, and for people in colour and without what would fool them.
func TestDiff(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	c := f.Claim(id)
	if code, _, errs := f.run("diff", id); code != 1 || !strings.Contains(errs, "it has reached no checkpoint yet") {
		t.Errorf("exit %d: %s", code, errs)
	}
	const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new \u202e \x1b[2J\r\n"
	changes := tasks.NewChanges(workspace.Comparison{Files: []workspace.FileChange{{Name: "x", Patch: patch}}},
		strings.Clone)
	if err := c.SaveLatest(t.Context(), tasks.DiffLog, changes.Encode()); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := f.run("diff", id); code != 0 || out != patch {
		t.Errorf("exit %d: %q, %s", code, out, errs)
	}
	sitting := f.sit(wide, nil, "diff", id)
	sitting.exits(0)
	raw := sitting.raw.String()
	for _, want := range []string{
		"\x1b[1m--- a/x\x1b[0m", "\x1b[36m@@ -1 +1 @@\x1b[0m", "\x1b[31m-old\x1b[0m",
		`[32m+new \u202e \x1b[2J\x0d` + "\x1b[0m",
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("want %q in %q", want, raw)
		}
	}
}
