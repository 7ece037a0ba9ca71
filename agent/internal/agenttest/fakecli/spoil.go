package main

import (
	"os"
	"strings"
	"syscall"
)

// spoil spoils something and becomes the CLI, in whose place it is run.
func spoil() int {
	args := append([]string{os.Getenv("AGENT_TEST_CLI")}, os.Args[1:]...)
	switch os.Getenv("AGENT_TEST_SPOIL") {
	case "flag":
		args = append(args, "--no-such-flag")
	case "session":
		for i, arg := range args {
			if strings.HasPrefix(arg, "--session-id=") {
				args[i] = "--resume=00000000-0000-4000-8000-00000000dead"
			}
		}
	case "bypass":
		args = append(args, "--dangerously-skip-permissions")
	case "directory":
		dir, err := os.Getwd()
		if err != nil || os.RemoveAll(dir) != nil {
			return 93
		}
	case "config":
		if os.WriteFile(os.Getenv("CLAUDE_CONFIG_DIR")+"/.claude.json", []byte("{"), 0o600) != nil {
			return 94
		}
	case "input":
		r, w, err := os.Pipe()
		if err != nil {
			return 95
		}
		_, _ = w.WriteString("not JSON\n")
		_ = w.Close()
		_ = syscall.Dup2(int(r.Fd()), 0)
	}
	_ = syscall.Exec(args[0], args, os.Environ()) //nolint:gosec // the CLI of the test
	return 96
}
