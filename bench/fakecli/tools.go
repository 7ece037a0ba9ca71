package fakecli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// Processes are the PIDs of a run. The fake prints them as JSON in its first text delta.
type Processes struct {
	Keeper int   `json:"keeper"`
	Leader int   `json:"leader"` // the fake itself
	Tools  []int `json:"tools"`
}

// All lists the pids of the run.
func (p Processes) All() []int { return append([]int{p.Keeper, p.Leader}, p.Tools...) }

// tools starts four processes like those that tools leave behind: two ordinary ones, one that has left its session, and
// one that has also cleared its environment, so that it has no marker. All hold the CLI's stdout, like a tool in the
// background.
func tools(out io.Writer) error {
	p := Processes{Keeper: os.Getppid(), Leader: os.Getpid()}
	for _, tool := range []struct{ leaves, scrubs bool }{{}, {}, {leaves: true}, {leaves: true, scrubs: true}} {
		cmd := exec.Command("/proc/self/exe") //nolint:noctx // it must outlive everything except the keeper
		cmd.Env = append(cmd.Env, RoleVariable+"="+Tool)
		if !tool.scrubs {
			cmd.Env = append(os.Environ(), cmd.Env...)
		}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: tool.leaves}
		if err := cmd.Start(); err != nil {
			return err
		}
		p.Tools = append(p.Tools, cmd.Process.Pid)
	}
	said, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, textLine, said)
	return err
}

// toolLife bounds the life of a tool if the benchmark and everything that would end the tool were killed.
const toolLife = 2 * time.Minute

// ToolMain runs a tool that ends only by SIGKILL.
func ToolMain() {
	endure()
	<-time.After(toolLife)
}

func endure() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }
