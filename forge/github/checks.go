package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
)

// IsFailure reports whether the conclusion of a check run, or the state of a commit status, asks for work.
func IsFailure(conclusion string) bool {
	return slices.Contains([]string{"failure", "error", "timed_out", "startup_failure"}, conclusion)
}

// CIStatus reads the check runs and statuses of a commit, without errand's own. See CIStatusFor.
func (f *Forge) CIStatus(ctx context.Context, repo, commit string) (forge.CIStatus, error) {
	return f.CIStatusFor(ctx, repo, 0, commit)
}

// CIStatusFor is CIStatus for an event that names an installation. A token that may not read check runs sees only the statuses.
func (f *Forge) CIStatusFor(ctx context.Context, repo string, installation int64, commit string) (forge.CIStatus, error) {
	var ci forge.CIStatus
	what := "read the checks of " + ShortSHA(commit)
	gh, err := f.Client(ctx, repo, installation)
	if err != nil {
		return ci, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	runs := &github.ListCheckRunsOptions{Filter: new("latest"), ListOptions: github.ListOptions{PerPage: 100}}
	for run, err := range Pages(&runs.ListOptions, same[*github.CheckRun], func() ([]*github.CheckRun, *github.Response, error) {
		page, resp, err := gh.Checks.ListCheckRunsForRef(ctx, owner, name, commit, runs)
		if err != nil {
			return nil, nil, err
		}
		return page.CheckRuns, resp, nil
	}) {
		if Permanent(err) {
			break
		}
		if err != nil {
			return ci, f.Explain(what, err)
		}
		addCheckRun(&ci, run)
	}
	for status, err := range statuses(ctx, gh, owner, name, commit) {
		if err != nil {
			return ci, f.Explain(what, err)
		}
		switch {
		case status.GetContext() == IndicatorName:
		case IsFailure(status.GetState()):
			ci.Failed = append(ci.Failed, forge.FailedCheck{Name: status.GetContext(), URL: status.GetTargetURL(), Output: status.GetDescription()})
		case status.GetState() == "pending":
			ci.Pending++
		}
	}
	slices.SortFunc(ci.Failed, func(a, b forge.FailedCheck) int { return cmp.Compare(a.Name, b.Name) })
	return ci, nil
}

func same[T any](v T) T { return v }

func addCheckRun(ci *forge.CIStatus, run *github.CheckRun) {
	switch {
	case run.GetName() == IndicatorName:
	case run.GetStatus() != "completed":
		ci.Pending++
	case IsFailure(run.GetConclusion()):
		out := run.GetOutput()
		c := forge.FailedCheck{
			Name: run.GetName(), URL: run.GetDetailsURL(),
			Output: strings.TrimSpace(out.GetTitle() + "\n" + out.GetSummary() + "\n" + out.GetText()),
		}
		if run.GetApp().GetSlug() == "github-actions" {
			c.Job = run.GetID()
		}
		ci.Failed = append(ci.Failed, c)
	}
}

// ShortSHA abbreviates a commit as people write it.
func ShortSHA(sha string) string { return sha[:min(len(sha), 7)] }

const (
	logHead = 2_000    // bytes of a log: its beginning,
	logTail = 10_000   // and its end, which usually has the failure
	maxLog  = 64 << 20 // bytes to read for that
)

// JobLog returns the beginning and the end of a job's log. GitHub serves it from another host, at a URL that is valid for a minute and gets
// none of errand's credentials.
func (f *Forge) JobLog(ctx context.Context, gh *github.Client, repo string, job int64) (string, error) {
	owner, name := f.split(repo)
	at, _, err := gh.Actions.GetWorkflowJobLogs(ctx, owner, name, job, 0)
	if err != nil {
		return "", fmt.Errorf("find log of job %d: %w", job, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", fmt.Errorf("read log of job %d: %w", job, err)
	}
	resp, err := (&http.Client{Transport: f.clients.transport, Timeout: attempt}).Do(req)
	if err != nil {
		return "", fmt.Errorf("read log of job %d: %w", job, errors.Unwrap(err)) // without the URL
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read log of job %d: %s", job, resp.Status)
	}
	return headAndTail(io.LimitReader(resp.Body, maxLog))
}

// headAndTail returns the beginning and the end of a text.
func headAndTail(r io.Reader) (string, error) {
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
