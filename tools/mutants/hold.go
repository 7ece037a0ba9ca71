package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// holdCommand is the first argument of a copy of this program that holds one run of tests.
const holdCommand = "hold-tests"

// tests runs a test program by a copy of this program, which ends all processes that the tests leave behind.
func tests(ctx context.Context, dir, program string, args ...string) (said string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{holdCommand, program}, args...)...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// hold runs a command, and ends its descendants when it has ended or somebody asks for it. It returns an exit status.
func hold(args []string) int {
	const becomeSubreaper = 36 // PR_SET_CHILD_SUBREAPER: orphans of the tests become children of this process
	_, _, failed := syscall.Syscall(syscall.SYS_PRCTL, becomeSubreaper, 1, 0)
	if failed != 0 {
		fmt.Fprintln(os.Stderr, "become the parent of orphans:", failed)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // the tool starts itself
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr         // files: waiting for the tests is not waiting for their orphans
	err := cmd.Run()
	endChildren()

	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// endChildren kills all children until there are none. The children of a killed one are the next.
func endChildren() {
	for {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		_, err := syscall.Wait4(-1, nil, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			return
		}
	}
}

// children lists the children of all threads of this process.
func children() (pids []int) {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		text, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// limit is how long tests may run that took some time without a change.
func limit(took time.Duration) time.Duration { return time.Minute + 5*took }
