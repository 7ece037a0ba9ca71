package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/errand-fleet/errand/bench/table"
)

// start compares a complete run of a CLI that answers at once with the same exchange with a bare process.
func (b *bench) start(ctx context.Context) error {
	short, _, err := b.writeSession("short.ndjson", 0)
	if err != nil {
		return err
	}
	runner, err := newRunner(order{Dir: b.dir, Keeper: b.Keeper})
	if err != nil {
		return err
	}
	var bare, whole []time.Duration
	for i := range b.Starts {
		started := time.Now()
		if err := b.converse(ctx, short); err != nil {
			return fmt.Errorf("start a bare process: %w", err)
		}
		bare = append(bare, time.Since(started))

		id := fmt.Sprintf("start-%d", i)
		started = time.Now()
		_, err := complete(ctx, runner, spec(id, "replay "+short), host{})
		whole = append(whole, time.Since(started))
		if err := errors.Join(err, b.removeLogs(id)); err != nil {
			return err
		}
	}
	own, other := table.Median(whole), table.Median(bare)
	b.report.Note("a bare process, from start to exit", table.Milliseconds(other), "%.1f ms")
	b.report.Most("what a run adds to that", table.Milliseconds(own-other), 8, "%.1f ms")
	// Other load on the machine only adds to a time.
	b.report.Note("the fastest run less the fastest bare process",
		table.Milliseconds(slices.Min(whole)-slices.Min(bare)), "%.1f ms")
	return nil
}

// converse holds a run's conversation with the fake CLI: initialize, prompt, all output until the session is idle, end.
func (b *bench) converse(ctx context.Context, session string) error {
	cmd := b.cli(ctx)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(stdout)
	err = errors.Join(
		tell(stdin, lines, `{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`+"\n",
			`"control_response"`),
		tell(stdin, lines, userLine("replay "+session), `"state":"idle"`),
		stdin.Close(),
	)
	_, drained := io.Copy(io.Discard, lines)
	return errors.Join(err, drained, cmd.Wait())
}

// tell writes one line and reads up to the line that contains the mark.
func tell(in io.Writer, out *bufio.Reader, line, mark string) error {
	if _, err := io.WriteString(in, line); err != nil {
		return err
	}
	for {
		got, err := out.ReadBytes('\n')
		if err != nil {
			return err
		}
		if bytes.Contains(got, []byte(mark)) {
			return nil
		}
	}
}
