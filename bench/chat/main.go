// Command chat measures the time from a chat message to the first word of its answer: for the first message of a
// conversation and for the second, without and with CLIs kept ready. The worker is the installed program, the CLI is
// the real one, and the model is a fake that writes a word every 20 ms. Run `make bench-chat`, or `go run ./chat -h` in
// bench/ for its flags.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/modelfake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := table.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, parse, measure)
	stop()
	os.Exit(code)
}

type options struct {
	Conversations int
	Pause         time.Duration // between the end of an answer and the next message
	Bin           string
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{Conversations: 24}
	flags := flag.NewFlagSet("chat", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: two conversations")
	flags.StringVar(&o.Bin, "bin", "../bin", "the directory of worker")
	flags.DurationVar(&o.Pause, "pause", 2*time.Second, "the time between an answer and the next message")
	err := flags.Parse(args)
	if *quick {
		o.Conversations = 2
	}
	return o, err
}

// message has the times of one message, from its request.
type message struct{ asked, first time.Duration }

// system is a worker with a front door, and its model.
type system struct {
	ready  string // ERRAND_READY_CLIS
	model  *modelfake.Server
	called chan time.Time // when the model was called
	dir    string
	worker *door.Server
	of     [2][]message // the first messages of conversations, and the second
}

// measure lets a system without CLIs that are kept ready and one with them take turns.
func measure(ctx context.Context, o options, progress io.Writer) (_ table.Report, err error) {
	r := &report{machine: table.Machine(ctx), conversations: o.Conversations}
	for _, ready := range []string{"0", "1"} {
		var s *system
		s, err = start(ctx, o.Bin, ready)
		r.systems = append(r.systems, s)
		defer func() { err = errors.Join(err, s.stop()) }()
		if err != nil {
			return nil, err
		}
	}
	for i := range o.Conversations + 1 {
		fmt.Fprintln(progress, "== conversation", i)
		for _, s := range r.systems {
			thread := ""
			for n := range s.of {
				var m message
				if m, thread, err = s.say(ctx, thread); err != nil {
					return nil, err
				}
				if i > 0 { // the first conversation is not counted
					s.of[n] = append(s.of[n], m)
				}
				if !door.Until(ctx, time.Now().Add(o.Pause)) {
					return nil, context.Cause(ctx)
				}
			}
		}
	}
	return r, nil
}

// start starts a system. It must be stopped even after an error.
func start(ctx context.Context, bin, ready string) (s *system, err error) {
	s = &system{ready: ready, model: modelfake.New(), called: make(chan time.Time, 1)}
	asked := make(chan struct{})
	go func() {
		for range asked { // the model is never asked twice at once
			s.called <- time.Now()
		}
	}()
	words := strings.SplitAfter("The total of this invoice is one cent short.", " ")
	s.model.Answer("", modelfake.Turn{Chunks: words, Pace: 20 * time.Millisecond, Started: asked})
	if s.dir, err = os.MkdirTemp("", "b"); err != nil {
		return s, fmt.Errorf("create directory: %w", err)
	}
	s.worker, err = door.Standalone(ctx, bin, s.dir,
		"ERRAND_READY_CLIS="+ready, "ANTHROPIC_BASE_URL="+s.model.URL(), "ANTHROPIC_API_KEY=sk-ant-bench-key")
	return s, err
}

func (s *system) stop() (err error) {
	if s.worker != nil {
		err = s.worker.Stop()
	}
	s.model.Close()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// say sends a message, waits for the whole answer, and returns its times and its conversation.
func (s *system) say(ctx context.Context, thread string) (m message, _ string, err error) {
	body, _ := json.Marshal(map[string]string{"message": "What is wrong?", "thread": thread})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.worker.Addr+"/api/chat",
		strings.NewReader(string(body)))
	if err != nil {
		return m, "", fmt.Errorf("ask: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+door.Token)
	req.Header.Set("Content-Type", "application/json")
	begun := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return m, "", fmt.Errorf("ask: %w", err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			break
		}
		var e struct{ Type, Thread, Content string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return m, "", fmt.Errorf("read %q: %w", data, err)
		}
		switch e.Type {
		case "task":
			thread = e.Thread
		case "token":
			if m.first == 0 {
				m.first, m.asked = time.Since(begun), (<-s.called).Sub(begun)
			}
		case "error":
			return m, "", fmt.Errorf("ask: %s", e.Content)
		}
	}
	if m.first == 0 {
		return m, "", fmt.Errorf("ask: no answer came: %s: %w", resp.Status, lines.Err())
	}
	return m, thread, nil
}

// report is what is printed.
type report struct {
	machine       string
	conversations int
	systems       []*system
}

// Print implements table.Report.
func (r *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%d conversations\n\n", r.machine, r.conversations)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ERRAND_READY_CLIS\tmessage\tto the model\tto the first token\tworst")
	for _, s := range r.systems {
		for n, name := range []string{"first", "second"} {
			if len(s.of[n]) == 0 {
				continue
			}
			var worst time.Duration
			for _, m := range s.of[n] {
				worst = max(worst, m.first)
			}
			fmt.Fprintf(w, "%s\t%s\t%.0f ms\t%.0f ms\t%.0f ms\n", s.ready, name,
				table.Milliseconds(table.MedianOf(s.of[n], func(m message) time.Duration { return m.asked })),
				table.Milliseconds(table.MedianOf(s.of[n], func(m message) time.Duration { return m.first })),
				table.Milliseconds(worst))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
