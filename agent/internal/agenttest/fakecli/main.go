// Command fakecli plays the CLI in tests of package agent, or a program that the CLI starts, as AGENT_TEST_MODE says. It
// is a program of its own because the tests start it hundreds of times, and a test binary is slow to start.
package main

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	program, err := os.Executable()
	if err == nil && filepath.Base(program) == "hanging" { // a keeper that does not answer
		os.Exit(hanging(program))
	}
	os.Exit(play(os.Getenv("AGENT_TEST_MODE")))
}

// play returns the exit code.
func play(mode string) int {
	switch mode {
	case "sleep":
		_, _ = io.Copy(io.Discard, os.Stdin) // /dev/null: returns at once
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		hang()
		return 0
	case "burn":
		return burn()
	case "orphan":
		return leaveOrphan()
	case "forbidden":
		return tryForbidden()
	case "send":
		return send()
	case "share":
		return share(os.Args[1])
	case "segment":
		return segment(os.Args[1])
	case "spoil":
		return spoil()
	case "replay":
		return replay()
	}
	if awkward, ok := strings.CutPrefix(mode, "hostile "); ok {
		return playHostile(awkward)
	}
	return playCLI(mode)
}

// hang does nothing more. Unlike an empty select it is no deadlock to the runtime.
func hang() {
	for {
		_ = unix.Pause()
	}
}

// hanging says that it was started, and ends when its test does: what it says then fills the pipe of the test.
func hanging(program string) int {
	started, err := os.OpenFile(program+".started", os.O_WRONLY, 0)
	if err != nil {
		return 1
	}
	signal.Ignore(syscall.SIGTERM)
	for err == nil {
		_, err = started.Write(make([]byte, 4096))
	}
	return 1
}
