package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// What the agent is told of failed checks: enough to begin with.
const (
	maxFailures = 8        // checks
	maxSaid     = 4_000    // characters of what a check says of itself
	logHead     = 2_000    // bytes of a log: its beginning,
	logTail     = 10_000   // and its end, where the failure usually is
	maxLog      = 64 << 20 // bytes that are read for that
)

// said tells what failed checks said, each in a fence of its own.
func (k talk) said(ctx context.Context, failed []failure) string {
	var b strings.Builder
	for _, f := range failed[:min(len(failed), maxFailures)] {
		text := cut(visible(f.said), maxSaid)
		if f.job != 0 {
			log, err := k.jobLog(ctx, f.job)
			if err != nil { // it may have expired, and the check itself says the gist
				k.log.Warn("read log of check", "run", k.task.ID, "check", f.name, "err", err)
			}
			text = strings.TrimSpace(text + "\n\n" + plainly(log))
		}
		b.WriteString(outside("check "+line(f.name, 100), fmt.Sprintf("%s\n\n%s", line(f.url, 300), text)))
	}
	if more := len(failed) - maxFailures; more > 0 {
		fmt.Fprintf(&b, "%d more checks have failed.\n", more)
	}
	return b.String()
}

// jobLog is the beginning and the end of a job's log. It is somewhere else than at GitHub's API, at an address that is good for a minute and is
// sent no credential of ours.
func (k talk) jobLog(ctx context.Context, job int64) (string, error) {
	owner, name := k.o.path()
	at, _, err := k.gh.Actions.GetWorkflowJobLogs(ctx, owner, name, job, 0)
	if err != nil {
		return "", fmt.Errorf("find log of job %d: %w", job, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", fmt.Errorf("read log of job %d: %w", job, err)
	}
	resp, err := (&http.Client{Transport: k.clients.transport, Timeout: attempt}).Do(req)
	if err != nil {
		return "", fmt.Errorf("read log of job %d: %w", job, errors.Unwrap(err)) // without the address
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read log of job %d: %s", job, resp.Status)
	}
	return ends(io.LimitReader(resp.Body, maxLog))
}

// ends is the beginning and the end of a text.
func ends(r io.Reader) (string, error) {
	head, err := io.ReadAll(io.LimitReader(r, logHead))
	if err != nil {
		return "", fmt.Errorf("read log: %w", err)
	}
	var tail []byte
	left, buf := 0, make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		tail = append(tail, buf[:n]...)
		if over := len(tail) - logTail; over > 0 {
			tail, left = append(tail[:0], tail[over:]...), left+over
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read log: %w", err)
		}
	}
	gap := ""
	if left > 0 {
		gap = fmt.Sprintf("\n[… %d bytes are left out …]\n", left)
	}
	return strings.ToValidUTF8(string(head)+gap+string(tail), ""), nil
}
