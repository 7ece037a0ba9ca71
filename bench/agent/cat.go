package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-fleet/errand/bench/fakecli"
)

// cat measures the limit: the fake CLI writes into a pipe, and cat copies it into a file.
func (b *bench) cat(ctx context.Context) (_ sample, err error) {
	path := filepath.Join(b.dir, "cat.ndjson")
	file, err := os.Create(path)
	if err != nil {
		return sample{}, fmt.Errorf("create file: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(path)) }()
	r, w, err := os.Pipe()
	if err != nil {
		return sample{}, fmt.Errorf("open pipe: %w", err)
	}
	cat := exec.CommandContext(ctx, "cat")
	cat.Stdin, cat.Stdout, cat.Stderr = r, file, os.Stderr
	cli := b.cli(ctx)
	cli.Stdin, cli.Stdout, cli.Stderr = strings.NewReader(userLine("replay "+b.session)), w, os.Stderr

	started := time.Now()
	if err := cat.Start(); err != nil {
		return sample{}, fmt.Errorf("start cat: %w", err)
	}
	_ = r.Close()
	wrote := cli.Run()
	// The session is written, and cat waits for the end of the pipe, so its peak can be read.
	rss, err := memoryOf(cat.Process.Pid, peak)
	_ = w.Close()
	if err := errors.Join(wrote, err, cat.Wait()); err != nil {
		return sample{}, fmt.Errorf("pipe session into cat: %w", err)
	}
	s := sample{Wall: time.Since(started), CPU: cat.ProcessState.UserTime() + cat.ProcessState.SystemTime(), RSS: rss}
	s.Lines, err = countLines(path)
	return s, err
}

// cli is the fake CLI as a bare process.
func (b *bench) cli(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.self)
	cmd.Env = environment(fakecli.CLI)
	return cmd
}

// environment returns the environment of a re-executed process. GORACE removes a delay of one second at each exit with
// -race.
func environment(role string) []string {
	return []string{fakecli.RoleVariable + "=" + role, "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
}

// userLine is a message to the CLI.
func userLine(text string) string {
	return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`+"\n", text)
}

func countLines(path string) (n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("count lines: %w", err)
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	for {
		got, err := f.Read(buf)
		for _, c := range buf[:got] {
			if c == '\n' {
				n++
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return 0, fmt.Errorf("count lines: %w", err)
		}
	}
}
