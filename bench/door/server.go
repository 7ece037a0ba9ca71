// Package door runs programs as they are installed, front doors above all, and sends them events as Slack does.
package door

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Token opens the console of a front door.
const Token = "bench-console-token"

// Program is what is started. All fields but Wrap are required.
type Program struct {
	Name  string
	Args  []string // the first is its file
	Env   []string // in addition to the common environment
	Dir   string   // its home; what it logs is added to the file log there
	Redis string   // REDIS_URL
	Wrap  func(cmd *exec.Cmd) error
}

// FrontDoor is `enqueue serve`, found in a directory, for an app of a Slack.
func FrontDoor(bin, dir, redisURL string, s *Slack) Program {
	return Program{
		Name: "errand", Args: []string{filepath.Join(bin, "enqueue"), "serve"}, Dir: dir, Redis: redisURL,
		Env: append([]string{
			"ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_CONSOLE_TOKEN=" + Token, "ERRAND_STATE_DIR=" + dir,
		}, s.Env()...),
	}
}

// Server is a program at work.
type Server struct {
	Addr string // where it listens; only for Serve

	name    string
	cmd     *exec.Cmd
	listens chan string // where, once it does
	ended   chan error
}

// Serve starts a program and returns when it listens. A program that does not is ended with ctx.
func (p Program) Serve(ctx context.Context) (*Server, error) {
	s, err := p.Launch(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case s.Addr = <-s.listens:
		return s, nil
	case err := <-s.ended:
		said, _ := os.ReadFile(filepath.Join(p.Dir, "log"))
		return nil, fmt.Errorf("start %s: it ended: %w\n%s", p.Name, err, said)
	}
}

// address finds where a front door listens in what it prints; a standalone system prints the address of its console.
var address = regexp.MustCompile(`^(?:.*listens at|\s*console)\s+http://([^/\s]+)`)

// Launch starts a program.
func (p Program) Launch(ctx context.Context) (*Server, error) {
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir, "TMPDIR=" + p.Dir, "REDIS_URL=" + p.Redis},
		p.Env...)
	log, err := os.OpenFile(filepath.Join(p.Dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd.Stderr = log
	if p.Wrap != nil {
		if err := p.Wrap(cmd); err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Name, err)
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	s := &Server{name: p.Name, cmd: cmd, listens: make(chan string, 1), ended: make(chan error, 1)}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() { // what else it says is of no interest, but must not block it
			if found := address.FindStringSubmatch(lines.Text()); found != nil {
				s.listens <- found[1]
			}
		}
		s.ended <- cmd.Wait()
	}()
	return s, nil
}

// Stop ends it cleanly.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	return s.Wait()
}

// Wait returns when it has ended by itself.
func (s *Server) Wait() error {
	if err := <-s.ended; err != nil {
		return fmt.Errorf("end of %s: %w", s.name, err)
	}
	return nil
}

// Kill ends it as a crash does.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended //nolint:errcheck // that it was killed
}

// Pid is its process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// CPU is what it has used so far, in the kernel's steps of 10 ms.
func (s *Server) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", s.name, err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time of %s: %q", s.name, stat)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err, err2)
}
