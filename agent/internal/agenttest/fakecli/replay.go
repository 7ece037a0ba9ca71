package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// replay is a CLI that says what a fixture has, each line when the real one would have said it: an answer when it was
// asked, a turn when it was given a message, the end after the end of its input if a turn had come to its own.
func replay() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT) // what they do is in the fixture
	data, err := os.ReadFile(os.Getenv("AGENT_TEST_FIXTURE"))
	if err != nil {
		return 97
	}
	in := bufio.NewReader(os.Stdin)
	await := func(kind string) bool {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return false
			}
			if strings.Contains(line, `"type":"`+kind+`"`) {
				return true
			}
		}
	}
	began, over := false, false
	for line := range strings.Lines(string(data)) {
		var l struct {
			Type, Subtype, Stderr, Signal string

			Exit int
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			return 98
		}
		switch l.Type {
		case "control_response":
			await("control_request")
		case "system":
			if l.Subtype == "init" {
				began = await("user")
			}
		case "result":
			over = began
		case "":
			_, _ = os.Stderr.WriteString(l.Stderr)
			if over {
				_, _ = io.Copy(io.Discard, in)
			}
			if l.Signal == "SIGKILL" {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return l.Exit
		}
		_, _ = os.Stdout.WriteString(line)
	}
	return 99
}
