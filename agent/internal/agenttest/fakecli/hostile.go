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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"golang.org/x/sys/unix"
)

// hostile is a CLI that speaks the protocol and does one awkward thing, which its mode names.
type hostile struct {
	in    *bufio.Reader
	alive *os.File // held by every process of the run
}

// playHostile plays the mode of a hostile CLI. Its exit code is 0 if the CLI did as it should, whatever the run
// makes of it.
func playHostile(mode string) int {
	h := hostile{in: bufio.NewReaderSize(os.Stdin, 1<<20)}
	if mode == "stderr-flood" { // before a byte of output
		for range 10 << 10 {
			_, _ = os.Stderr.WriteString(strings.Repeat("e", 1023) + "\n")
		}
	}
	prompt := h.begin()
	if path := os.Getenv("AGENT_TEST_ALIVE"); path != "" && mode != "fds" {
		var err error
		if h.alive, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
			return 90
		}
	}
	switch mode {
	case "fds":
		h.answer(openFiles())
	case "identity":
		h.answer(identity())
	case "flood":
		out := bufio.NewWriter(os.Stdout)
		for i := range 20_000 {
			_, _ = fmt.Fprintf(out,
				`{"type":"assistant","session_id":"s","message":{"id":"m%d","content":[{"type":"text","text":"x"}]}}`+
					"\n", i)
		}
		_ = out.Flush()
		h.answer("flooded")
	case "stderr-flood":
		h.answer("flooded")
	case "huge":
		_, _ = os.Stdout.WriteString(`{"type":"user","x":"`)
		for range protocol.MaxLine >> 20 {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 1<<20))
		}
		_, _ = os.Stdout.WriteString("\"}\n")
		h.answer("huge")
	case "length":
		h.answer(strconv.Itoa(len(prompt)))
	case "torn": // a secret in two pieces, and a last line without its end
		for _, f := range []*os.File{os.Stdout, os.Stderr} {
			_, _ = f.WriteString("key sk-ant-te")
			_, _ = f.WriteString("st-secret.\n")
		}
		_, _ = os.Stdout.WriteString(`{"type":"result","subtype":"success","result":"torn","session_id":"s"}`)
		return 0
	case "exit-3":
		h.answer("said before")
		return 3
	case "mid-turn":
		return 0
	case "leak": // a process in another session holds the output open
		h.child(&syscall.SysProcAttr{Setsid: true}, os.Stdout, "sleep")
		h.answer("leaked")
	case "neighbour": // one in the CLI's own group and session
		h.child(nil, nil, "sleep")
		h.answer("spawned")
	case "regroup": // the group that was the CLI's is not any more
		pid := h.child(&syscall.SysProcAttr{Setpgid: true}, nil, "sleep")
		if syscall.Setpgid(0, pid) != nil {
			return 91
		}
		signal.Ignore(syscall.SIGTERM)
		h.hang()
	case "no-cwd":
		dir, err := os.Getwd()
		if err != nil || os.RemoveAll(dir) != nil {
			return 92
		}
		h.answer("homeless")
	case "no-dirs": // everything that was made for the run
		if os.RemoveAll(filepath.Dir(os.Getenv("CLAUDE_CONFIG_DIR"))) != nil {
			return 93
		}
		h.answer("homeless")
	case "burn": // itself, a child it waits for, and one that a child has left behind
		child := h.command("burn").Run()
		orphan := h.orphan("burn")
		if child != nil || orphan != nil || burn() != 0 {
			return 99
		}
		h.answer("burnt")
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		h.hang()
	default:
		return 94
	}
	for {
		if _, err := h.in.ReadByte(); err != nil {
			return 0
		}
	}
}

// begin returns the prompt once a turn has begun.
func (h hostile) begin() string {
	for {
		line, err := h.in.ReadBytes('\n')
		if err != nil {
			return ""
		}
		var l struct {
			Type      string
			RequestID string `json:"request_id"`
			Message   struct{ Content string }
		}
		_ = json.Unmarshal(line, &l)
		switch l.Type {
		case "control_request":
			say(m{"type": "control_response", "response": m{
				"subtype": "success", "request_id": l.RequestID,
			}})
		case "user":
			say(m{"type": "system", "subtype": "init", "session_id": "s", "model": "fake-1"})
			return l.Message.Content
		}
	}
}

func (h hostile) answer(text string) {
	say(m{"type": "result", "subtype": "success", "result": text, "session_id": "s", "num_turns": 1})
	say(m{"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "s"})
}

// hang does nothing more, not even at the end of the input.
func (h hostile) hang() {
	say(m{
		"type": "assistant", "session_id": "s", "message": m{"id": "m", "content": "hanging"},
	})
	hang()
}

// child starts another process of this binary, and returns its number when it runs.
func (h hostile) child(attributes *syscall.SysProcAttr, out *os.File, mode string) int {
	cmd := h.command(mode)
	cmd.SysProcAttr = attributes
	if out != nil {
		cmd.Stdout, cmd.Stderr = out, out
	}
	if cmd.Start() != nil {
		os.Exit(95)
	}
	return cmd.Process.Pid
}

// orphan starts another process of this binary through one that does not wait for it, and returns when the orphan
// has ended.
func (h hostile) orphan(mode string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	parent := h.command("orphan")
	parent.Env = append(parent.Env, "AGENT_TEST_ORPHAN="+mode)
	parent.ExtraFiles = []*os.File{w}
	if err := parent.Run(); err != nil {
		return err
	}
	_ = w.Close()
	_, err = io.Copy(io.Discard, r) // the orphan holds the other end
	return err
}

// leaveOrphan starts what becomes an orphan when this process ends.
func leaveOrphan() int {
	cmd := hostile{alive: os.NewFile(3, "held")}.command(os.Getenv("AGENT_TEST_ORPHAN"))
	if cmd.Start() != nil {
		return 1
	}
	return 0
}

func (h hostile) command(mode string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), "AGENT_TEST_MODE="+mode)
	if h.alive != nil {
		cmd.ExtraFiles = []*os.File{h.alive}
	}
	return cmd
}

// burn uses as many bytes of memory as AGENT_TEST_MEMORY says, and a processor until as much of its time is used up as
// AGENT_TEST_BURN says.
func burn() int {
	limit, err := time.ParseDuration(os.Getenv("AGENT_TEST_BURN"))
	if err != nil {
		return 97
	}
	size, err := strconv.Atoi(os.Getenv("AGENT_TEST_MEMORY"))
	if err != nil {
		return 97
	}
	memory := make([]byte, size)
	for {
		for i := 0; i < len(memory); i += 4096 {
			memory[i]++
		}
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
			return 98
		}
		if time.Duration(u.Utime.Nano()+u.Stime.Nano()) >= limit {
			return 0
		}
	}
}

// openFiles lists what is open besides what the list itself needs and the Go runtime opens for itself.
func openFiles() string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err.Error()
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		own := slices.ContainsFunc([]string{"anon_inode:", "/proc/", "/sys/fs/cgroup/"}, func(p string) bool {
			return strings.HasPrefix(target, p)
		})
		if err == nil && !own {
			open = append(open, e.Name())
		}
	}
	slices.Sort(open)
	return strings.Join(open, " ")
}

// identity describes the process to the system.
func identity() string {
	adj, _ := os.ReadFile("/proc/self/oom_score_adj")
	stat, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest) // state, ppid, pgrp, session, tty, …
	return fmt.Sprintf("adj %s leads its group %t, session of its keeper %t, terminal %s",
		strings.TrimSpace(string(adj)), f[2] == strconv.Itoa(os.Getpid()), f[3] == f[1], f[4])
}
