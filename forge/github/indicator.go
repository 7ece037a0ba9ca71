package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/untrusted"
)

// IndicatorName is the name of errand's check runs and commit statuses.
const IndicatorName = "errand"

// MaxStatus is GitHub's limit for the description of a commit status, in characters.
const MaxStatus = 140

// StatusIndicator shows beside a commit how a task is going: a check run, or a commit status for a token, which may not
// create check runs.
type StatusIndicator interface {
	// Show says what is being done.
	Show(ctx context.Context, action string) error
	// Finish shows the verdict. It may be called again.
	Finish(ctx context.Context, v Verdict) error
	// Finished returns when the indicator was finished, if it was before it was opened and is not shown again, and the
	// zero time otherwise.
	Finished() time.Time
	// Interval is the least time between two calls of Show.
	Interval() time.Duration
}

// Verdict is what an indicator shows in the end. As JSON it has what also holds for a later head with
// the same changes.
type Verdict struct {
	Conclusion string    `json:"conclusion"` // of a check run, like the next two
	Title      string    `json:"title"`
	Summary    string    `json:"-"`
	Line       string    `json:"line"` // of a commit status, of any length
	State      string    `json:"-"`    // of a commit status: StatusError or StatusPending; "" for success
	At         time.Time `json:"-"`
}

// States of a commit status. GitHub shows an error in red, and counts neither of them as passed.
const (
	StatusError   = "error"   // there is no review
	StatusPending = "pending" // another task makes the review of the commit
)

// IndicatorTarget says what an indicator is about.
type IndicatorTarget struct {
	Repo, Commit string
	Task         string // ID
	URL          string // where people see the task; different for each task of a commit
}

// OpenIndicator finds the indicator of a task or creates it.
func (f *Forge) OpenIndicator(ctx context.Context, gh *github.Client, t IndicatorTarget) (StatusIndicator, error) {
	owner, name := f.split(t.Repo)
	if f.IsApp() {
		return openCheckRun(ctx, &checkRun{gh: gh, owner: owner, name: name, url: &t.URL}, f.cfg.AppID, t)
	}
	return openCommitStatus(ctx, &commitStatus{gh: gh, owner: owner, name: name, sha: t.Commit, url: t.URL})
}

// HasVerdict reports whether an indicator of errand for a commit is finished, of whatever task. It reports false if
// GitHub lets errand read none.
func (f *Forge) HasVerdict(ctx context.Context, gh *github.Client, repo, commit string) (bool, error) {
	owner, name := f.split(repo)
	var found bool
	var err error
	if f.IsApp() {
		var page *github.ListCheckRunsResults
		page, _, err = gh.Checks.ListCheckRunsForRef(ctx, owner, name, commit, &github.ListCheckRunsOptions{
			CheckName: new(IndicatorName), Status: new("completed"), AppID: &f.cfg.AppID,
		})
		found = err == nil && len(page.CheckRuns) > 0
	} else {
		var now *github.RepoStatus
		now, err = (&commitStatus{gh: gh, owner: owner, name: name, sha: commit}).present(ctx)
		found = isFinal(now.GetState())
	}
	if err == nil || Permanent(err) {
		return found, nil
	}
	return false, fmt.Errorf("look for a verdict on %s: %w", ShortSHA(commit), err)
}

// NoIndicator is the indicator where GitHub allows none.
type NoIndicator struct{}

func (NoIndicator) Show(context.Context, string) error    { return nil }
func (NoIndicator) Finish(context.Context, Verdict) error { return nil }
func (NoIndicator) Finished() time.Time                   { return time.Time{} }
func (NoIndicator) Interval() time.Duration               { return time.Minute }

// checkRun is the indicator of an App.
type checkRun struct {
	gh          *github.Client
	owner, name string
	id          int64
	url         *string
	finished    atomic.Pointer[time.Time]
}

// openCheckRun finds the task's check run by its external ID, in whatever state it is, or creates one.
func openCheckRun(ctx context.Context, c *checkRun, app int64, t IndicatorTarget) (StatusIndicator, error) {
	opt := &github.ListCheckRunsOptions{CheckName: new(IndicatorName), Filter: new("all"), AppID: &app}
	for run, err := range c.all(ctx, t.Commit, opt) {
		if err != nil {
			return nil, fmt.Errorf("list check runs of %s: %w", ShortSHA(t.Commit), err)
		}
		if run.GetExternalID() == t.Task && run.GetApp().GetID() == app {
			c.id = run.GetID()
			if run.GetStatus() == "completed" {
				c.finished.Store(run.CompletedAt.GetTime())
			}
			return c, nil
		}
	}
	run, _, err := c.gh.Checks.CreateCheckRun(ctx, c.owner, c.name, github.CreateCheckRunOptions{
		Name: IndicatorName, HeadSHA: t.Commit, ExternalID: &t.Task, DetailsURL: c.url, Status: new("in_progress"),
		Output: output("Reviewing", "The agent is about to start."),
	})
	if err != nil {
		return nil, fmt.Errorf("create check run of %s: %w", ShortSHA(t.Commit), err)
	}
	c.id = run.GetID()
	return c, nil
}

// all lists the check runs of a commit in the repository of c.
func (c *checkRun) all(
	ctx context.Context, commit string, opt *github.ListCheckRunsOptions,
) iter.Seq2[*github.CheckRun, error] {
	opt.PerPage = 100
	return Pages(&opt.ListOptions, Same[*github.CheckRun], func() ([]*github.CheckRun, *github.Response, error) {
		page, resp, err := c.gh.Checks.ListCheckRunsForRef(ctx, c.owner, c.name, commit, opt)
		if err != nil {
			return nil, nil, err
		}
		return page.CheckRuns, resp, nil
	})
}

func (c *checkRun) Interval() time.Duration { return 15 * time.Second }

func (c *checkRun) Finished() time.Time { return value(&c.finished) }

// Show also restarts a check run that was finished, for a task that is retried.
func (c *checkRun) Show(ctx context.Context, action string) error {
	c.finished.Store(nil)
	return c.update(ctx, github.UpdateCheckRunOptions{Status: new("in_progress"), Output: output("Reviewing", action)})
}

func (c *checkRun) Finish(ctx context.Context, v Verdict) error {
	return c.update(ctx, github.UpdateCheckRunOptions{
		Status: new("completed"), Conclusion: &v.Conclusion, CompletedAt: &github.Timestamp{Time: v.At},
		Output: output(v.Title, v.Summary),
	})
}

func (c *checkRun) update(ctx context.Context, u github.UpdateCheckRunOptions) error {
	u.Name, u.DetailsURL = IndicatorName, c.url
	if _, _, err := c.gh.Checks.UpdateCheckRun(ctx, c.owner, c.name, c.id, u); err != nil {
		return fmt.Errorf("update check run %d: %w", c.id, err)
	}
	return nil
}

func output(title, summary string) *github.CheckRunOutput {
	return &github.CheckRunOutput{Title: &title, Summary: &summary}
}

// commitStatus is the indicator of a token. GitHub keeps every status ever set, shows the last one of a context, and
// takes at most 1,000 per commit. Hence the long interval, and the check of the present status before the final one.
// The target URL identifies the task.
type commitStatus struct {
	gh          *github.Client
	owner, name string
	sha, url    string
	finished    atomic.Pointer[time.Time]
}

// openCommitStatus sets the status to pending, unless it is the task's already.
func openCommitStatus(ctx context.Context, c *commitStatus) (StatusIndicator, error) {
	now, err := c.present(ctx)
	if err != nil {
		return nil, err
	}
	if now.GetTargetURL() == c.url {
		if isFinal(now.GetState()) {
			c.finished.Store(now.CreatedAt.GetTime())
		}
		return c, nil
	}
	return c, c.set(ctx, "pending", "Reviewing")
}

func (c *commitStatus) Interval() time.Duration { return time.Minute }

func (c *commitStatus) Finished() time.Time { return value(&c.finished) }

func (c *commitStatus) Show(ctx context.Context, action string) error {
	c.finished.Store(nil)
	return c.set(ctx, "pending", untrusted.Cut(action, MaxStatus))
}

// isFinal reports whether a commit status of errand is a verdict.
func isFinal(state string) bool { return state == "success" || state == StatusError }

// Finish sets the verdict's state. The description says what was not done, or what to read: findings do not make a
// commit red, because people decide whether a change is good enough.
func (c *commitStatus) Finish(ctx context.Context, v Verdict) error {
	now, err := c.present(ctx)
	if err != nil {
		return err
	}
	line, state := untrusted.Cut(v.Line, MaxStatus), cmp.Or(v.State, "success")
	mine := now.GetTargetURL() == c.url
	if mine && now.GetState() == state && now.GetDescription() == line {
		return nil
	}
	if !mine && state == StatusPending {
		return nil // the other task shows itself
	}
	return c.set(ctx, state, line)
}

// present returns errand's status as GitHub shows it, or nil.
func (c *commitStatus) present(ctx context.Context) (*github.RepoStatus, error) {
	for one, err := range statuses(ctx, c.gh, c.owner, c.name, c.sha) {
		if err != nil {
			return nil, fmt.Errorf("read status of %s: %w", ShortSHA(c.sha), err)
		}
		if one.GetContext() == IndicatorName {
			return one, nil
		}
	}
	return nil, nil
}

func (c *commitStatus) set(ctx context.Context, state, description string) error {
	_, _, err := c.gh.Repositories.CreateStatus(ctx, c.owner, c.name, c.sha, &github.RepoStatus{
		State: &state, Context: new(IndicatorName), Description: &description, TargetURL: &c.url,
	})
	if err != nil {
		return fmt.Errorf("set status of %s: %w", ShortSHA(c.sha), err)
	}
	return nil
}

func value(t *atomic.Pointer[time.Time]) time.Time {
	if at := t.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// statuses lists the latest status of each context of a commit.
func statuses(ctx context.Context, gh *github.Client, owner, name, sha string) iter.Seq2[*github.RepoStatus, error] {
	opt := &github.ListOptions{PerPage: 100}
	return Pages(opt, Same[*github.RepoStatus], func() ([]*github.RepoStatus, *github.Response, error) {
		page, resp, err := gh.Repositories.GetCombinedStatus(ctx, owner, name, sha, opt)
		if err != nil {
			return nil, nil, err
		}
		return page.Statuses, resp, nil
	})
}

// IsFailure reports whether the conclusion of a check run, or the state of a commit status, asks for work.
func IsFailure(conclusion string) bool {
	return slices.Contains([]string{"failure", "error", "timed_out", "startup_failure"}, conclusion)
}

// CIStatus reads the check runs and statuses of a commit, without errand's own. See CIStatusFor.
func (f *Forge) CIStatus(ctx context.Context, repo, commit string) (forge.CIStatus, error) {
	return f.CIStatusFor(ctx, repo, 0, commit)
}

// CIStatusFor is CIStatus for an event that names an installation. A token that may not read check runs sees only the
// statuses.
func (f *Forge) CIStatusFor(
	ctx context.Context, repo string, installation int64, commit string,
) (forge.CIStatus, error) {
	var ci forge.CIStatus
	what := "read the checks of " + ShortSHA(commit)
	gh, err := f.Client(ctx, repo, installation)
	if err != nil {
		return ci, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	runs := &checkRun{gh: gh, owner: owner, name: name}
	for run, err := range runs.all(ctx, commit, &github.ListCheckRunsOptions{Filter: new("latest")}) {
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
			ci.Failed = append(ci.Failed, forge.FailedCheck{
				Name: status.GetContext(), URL: status.GetTargetURL(), Output: status.GetDescription(),
			})
		case status.GetState() == "pending":
			ci.Pending++
		}
	}
	slices.SortFunc(ci.Failed, func(a, b forge.FailedCheck) int { return cmp.Compare(a.Name, b.Name) })
	return ci, nil
}

// Same is the read of [Pages] for elements as they are.
func Same[T any](v T) T { return v }

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

// JobLog returns the beginning and the end of a job's log. GitHub serves it from another host, at a URL that is valid
// for a minute and gets none of errand's credentials.
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
