package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/redisserver"
)

// The request, the agent's command and its answer. The command does not contain its own output.
const (
	question = "where are you?"
	look     = `echo "uid $(id -u)"; git --version; rg --version; touch /usr/bin/mine; touch mine && echo "files $(ls)"`
	answer   = "I am in the image."
)

// trial is the image with its surroundings. One goroutine uses it.
type trial struct {
	img          image
	stdout       io.Writer
	redis        *redisserver.Server
	model        *modelfake.Server
	door, worker spec
	shared       spec          // the worker without a sandbox, where only the engine protects secrets
	grace        time.Duration // for a worker's stop
	log          bytes.Buffer  // of the containers
}

// newTrial starts the image's surroundings.
func newTrial(ctx context.Context, img image, compose, dir string, stdout io.Writer) (*trial, error) {
	path, ok := redisserver.Find()
	if !ok {
		return nil, errors.New("redis-server is missing")
	}
	redis, err := redisserver.Start(ctx, redisserver.Config{Path: path, Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	t := &trial{img: img, stdout: stdout, redis: redis, model: modelfake.New()}
	t.model.Answer(question,
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": look, "description": "look around"},
		}}},
		modelfake.Turn{Text: answer})
	t.model.Answer(spying, spyTurns()...)
	if err := t.read(ctx, compose, dir); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// read takes the start of front door and worker from the Compose file. Only the address of Redis differs.
func (t *trial) read(ctx context.Context, compose, dir string) error {
	all, err := services(ctx, compose, dir, "REDIS_PASSWORD=unused\nERRAND_CONSOLE_TOKEN=trial-token-for-loopback\n"+
		"ANTHROPIC_API_KEY=sk-ant-trial\nANTHROPIC_BASE_URL="+t.model.URL()+"\n")
	if err != nil {
		return err
	}
	if t.door, err = t.img.spec(all["enqueue"], dir); err != nil {
		return err
	}
	if t.worker, err = t.img.spec(all["worker"], dir); err != nil {
		return err
	}
	for _, s := range []*spec{&t.door, &t.worker} {
		s.env = append(s.env, "REDIS_URL="+t.redis.URL())
	}
	t.shared = t.worker
	t.shared.env = append(slices.Clone(t.shared.env), "ERRAND_SANDBOX=none")
	if g := all["worker"].StopGracePeriod; g != nil {
		t.grace = time.Duration(*g)
	}
	return nil
}

func (t *trial) close() error {
	t.model.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := t.redis.Stop(ctx); err != nil {
		return fmt.Errorf("stop redis: %w", err)
	}
	return nil
}

func (t *trial) say(format string, args ...any) { fmt.Fprintf(t.stdout, "   "+format+"\n", args...) }

// play runs all steps.
func (t *trial) play(ctx context.Context) error {
	return t.with(ctx, t.door, func(*container) error {
		err := t.with(ctx, t.worker, func(*container) error {
			if err := t.until(ctx, t.client("doctor")); err != nil {
				return err
			}
			return t.ask(ctx)
		})
		if err != nil {
			return err
		}
		return t.with(ctx, t.shared, func(c *container) error { return t.spyOn(ctx, c) })
	})
}

// with calls a function while a container runs and is healthy, and prints the containers' logs if it fails.
func (t *trial) with(ctx context.Context, s spec, scene func(*container) error) error {
	c, err := t.img.start(s, &t.log)
	if err != nil {
		return err
	}
	began := time.Now()
	check := s
	check.command = s.health
	if err = t.until(ctx, check); err == nil {
		t.say("%-8s healthy after %s, as user %s, with a read-only root (%s)", s.name, since(began),
			t.img.Config.User, s.health[0])
		err = scene(c)
	}
	began = time.Now()
	err = errors.Join(err, c.stop(t.grace))
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", s.name, err, t.log.String())
	}
	t.say("%-8s stopped by TERM after %s, exit code 0", s.name, since(began))
	return nil
}

// client is the command line, in a container like the front door's.
func (t *trial) client(args ...string) spec {
	s := t.door
	s.command = append([]string{"enqueue"}, args...)
	return s
}

// until repeats a command until it succeeds.
func (t *trial) until(ctx context.Context, s spec) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		_, err := t.img.run(ctx, s)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
	}
}

// ask submits a task, checks where it ran, and reads its log.
func (t *trial) ask(ctx context.Context) error {
	began := time.Now()
	said, err := t.img.run(ctx, t.client("chat", "--follow", question))
	if err != nil {
		return err
	}
	if !strings.Contains(said, answer) {
		return fmt.Errorf("the answer is %q, want %q", said, answer)
	}
	t.say("%-8s enqueue chat has an answer of the image's CLI after %s", "run", since(began))
	for _, want := range []string{
		fmt.Sprint("uid ", t.img.uid), "git version 2", "ripgrep 1", "Read-only file system", "files mine",
	} {
		if !t.heard(want) {
			return fmt.Errorf("the agent's command printed no %q", want)
		}
	}
	list, err := t.img.run(ctx, t.client("list", "--json"))
	if err != nil {
		return err
	}
	var page struct {
		Tasks []struct{ Task struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(list), &page); err != nil || len(page.Tasks) != 1 {
		return fmt.Errorf("read enqueue list: %w\n%s", err, list)
	}
	log, err := t.img.run(ctx, t.client("logs", page.Tasks[0].Task.ID))
	if err != nil {
		return err
	}
	if !strings.Contains(log, answer) {
		return fmt.Errorf("the log that the front door serves does not have the answer:\n%s", log)
	}
	t.say("%-8s its tools ran as uid %d and wrote only to its directory; enqueue logs has its log", "run", t.img.uid)
	return nil
}

// heardLine returns the line after a text in the requests to the model, or an empty string.
func (t *trial) heardLine(s string) string {
	for _, r := range t.model.Requests() {
		if i := bytes.Index(r.Body, []byte(s)); i >= 0 {
			return string(r.Body[i:min(i+300, len(r.Body))])
		}
	}
	return ""
}

// heard reports whether a request to the model contained a text. Tool output is sent to the model.
func (t *trial) heard(s string) bool { return t.heardLine(s) != "" }

func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }
