package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// queue is where interactive tasks wait, and what the bare contender uses as well.
const queue = "interactive"

// The names of the contenders in the table.
const (
	bareName = "bare asynq"
	boltName = "Bolt + BullMQ"
	ownName  = "errand"
)

// contender takes events of Slack's and puts them into a queue.
type contender struct {
	name string
	path string // of its URL
	list string // in Redis, whose length is that of the queue
	args []string
	env  []string
}

func (b *bench) contenders() ([]contender, error) {
	pending := "asynq:{" + queue + "}:pending"
	slack := []string{"SLACK_BOT_TOKEN=" + botToken, "SLACK_SIGNING_SECRET=" + signingSecret, "SLACK_API_URL=" + b.slack.URL + "/api/"}
	list := []contender{
		{name: bareName, path: "/", list: pending, args: []string{b.self}, env: []string{bareVariable + "=1"}},
		{
			name: ownName, path: "/slack/events", list: pending, args: []string{filepath.Join(b.Bin, "enqueue"), "serve"},
			env: append([]string{"ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_CONSOLE_TOKEN=bench-console-token", "ERRAND_STATE_DIR=" + b.dir}, slack...),
		},
	}
	if !b.Bolt {
		return list, nil
	}
	if _, err := os.Stat(filepath.Join(b.Root, "node_modules", "@slack", "bolt")); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no Bolt is installed: use `make bench-ingress`, or leave it out with -bolt=false")
	}
	return append(list, contender{
		name: boltName, path: "/slack/events", list: "bull:slack:wait", args: []string{"node", filepath.Join(b.Root, "bolt.mjs")}, env: slack,
	}), nil
}

// server is a contender at work.
type server struct {
	contender
	addr    string
	cmd     *exec.Cmd
	listens chan string // where, once it does
	ended   chan error
}

// serve starts a contender and returns when it listens.
func (b *bench) serve(ctx context.Context, c contender, redisURL string) (*server, error) {
	s, err := b.launch(ctx, c, redisURL)
	if err != nil {
		return nil, err
	}
	select {
	case s.addr = <-s.listens:
		return s, nil
	case err := <-s.ended:
		said, _ := os.ReadFile(filepath.Join(b.dir, "log"))
		return nil, fmt.Errorf("start %s: it ended: %w\n%s", c.name, err, said)
	}
}

// launch starts a program.
func (b *bench) launch(ctx context.Context, c contender, redisURL string) (*server, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TMPDIR=" + b.dir, "REDIS_URL=" + redisURL}, c.env...)
	log, err := os.OpenFile(filepath.Join(b.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	s := &server{contender: c, cmd: cmd, listens: make(chan string, 1), ended: make(chan error, 1)}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() { // what else it says is of no interest, but must not block it
			if _, addr, ok := strings.Cut(lines.Text(), "listens at http://"); ok {
				s.listens <- addr
			}
		}
		s.ended <- cmd.Wait()
	}()
	return s, nil
}

// stop ends it in an orderly way.
func (s *server) stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-s.ended; err != nil {
		return fmt.Errorf("stop %s: %w", s.name, err)
	}
	return nil
}

// events makes up requests for a contender.
func (b *bench) events(s *server, n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = b.slack.request(s.addr, s.path, "please look at the build")
	}
	return list
}

// waiting is the length of its queue.
func (s *server) waiting(ctx context.Context, r *redis.Client) (int64, error) {
	n, err := r.LLen(ctx, s.list).Result()
	if err != nil {
		return 0, fmt.Errorf("look at the queue of %s: %w", s.name, err)
	}
	return n, nil
}

// cpu is what it has used so far, in the kernel's steps of 10 ms.
func (s *server) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
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
