package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

const (
	settingsFile = ".github/errand.yml"
	maxSettings  = 64 << 10 // bytes
	maxGuidance  = 20_000   // characters of a repository's instructions for reviewers
)

// settings reads a repository's settings from its base branch: changes in a pull request count after the merge. unknown
// describes the invalid parts of the file in sentences. The result is cached for a short time.
func (s *Source) settings(ctx context.Context, gh *github.Client, o origin, base string) (c settings, unknown []string, err error) {
	key, now := strings.ToLower(o.Repo)+" "+base, s.cfg.Now()
	if known, ok := s.wishes.Get(key, now); ok {
		return known.settings, known.unknown, nil
	}
	text, cut, err := s.fileOf(ctx, gh, o, base, settingsFile, maxSettings)
	if err != nil {
		return settings{}, nil, err
	}
	if cut { // half a file may mean something else than the whole
		c.Unread, unknown = true, []string{fmt.Sprintf("The file is larger than %d KiB, so it is ignored.", maxSettings>>10)}
	} else {
		c, unknown = parseSettings([]byte(text))
	}
	s.wishes.Put(key, wish{c, unknown}, now)
	return c, unknown, nil
}

// wish holds the settings of a branch and the errors in them.
type wish struct {
	settings settings
	unknown  []string
}

// fileOf reads at most the first bytes of a file on a branch, or "" if it does not exist or is a directory. cut reports
// that there are more. If the file is larger than GitHub's limit, it returns an *tasks.InputError.
func (s *Source) fileOf(ctx context.Context, gh *github.Client, o origin, branch, path string, most int) (text string, cut bool, err error) {
	owner, name := o.path()
	file, _, _, err := gh.Repositories.GetContents(ctx, owner, name, path, &github.RepositoryContentGetOptions{Ref: "refs/heads/" + branch})
	what := fmt.Sprintf("read %s of %s", path, o.Repo)
	if hub.StatusCode(err) == http.StatusNotFound {
		return "", false, nil
	}
	if err != nil {
		return "", false, s.sorted(what, err)
	}
	switch {
	case file == nil: // a directory
		return "", false, nil
	case file.GetEncoding() == "none":
		return "", false, &tasks.InputError{Sentence: path + " of " + o.Repo + " is too large."}
	}
	if text, err = file.GetContent(); err != nil {
		return "", false, fmt.Errorf("%s: %w", what, err)
	}
	return text[:min(len(text), most)], len(text) > most, nil
}

// expected applies the repository's settings to a task before it is submitted; the error is ignored if they exclude it.
// If GitHub does not return the settings in time, the worker checks them.
func (s *Source) expected(ctx context.Context, t draft, pr *github.PullRequest) (draft, error) {
	o := t.origin
	if t.Profile == agent.Untrusted && !o.byPerson() {
		if ok, err := s.approved(ctx, o); err != nil {
			return t, err
		} else if !ok {
			return t, ignored{s.unapproved(), slog.LevelInfo}
		}
	}
	ask, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	gh, err := s.client(ask, o)
	var c settings
	if err == nil {
		c, _, err = s.settings(ask, gh, o, o.Base)
	}
	if err != nil {
		s.log.Warn("handle event without the repository's settings", "err", err)
		return t, nil
	}
	if why := c.refuses(t.Kind, o, pr, nil); why != "" {
		return t, ignored{why, slog.LevelInfo}
	}
	t.Options.Model = c.Models[t.Kind]
	return t, nil
}

// refuses returns why a kind of work is not done automatically on a pull request that changes these files, or "".
func (c settings) refuses(kind string, o origin, pr *github.PullRequest, files []string) string {
	switch {
	case o.byPerson():
		return ""
	case !c.on(kind):
		return "The repository's settings switch " + kind + " off."
	}
	return c.skips(pr, files)
}

// wanted applies the settings before a run: it returns an *tasks.InputError if they exclude it, and the instructions.
func (s *Source) wanted(ctx context.Context, gh *github.Client, t tasks.Task, o origin, pr *github.PullRequest) (guidance string, err error) {
	c, _, err := s.settings(ctx, gh, o, o.Base)
	if err != nil {
		return "", err
	}
	var files []string
	if len(c.Skip.Paths) > 0 && !o.byPerson() {
		if files, err = s.changed(ctx, gh, o); err != nil {
			return "", err
		}
	}
	if why := c.refuses(t.Kind, o, pr, files); why != "" {
		return "", &tasks.InputError{Sentence: why}
	}
	return s.guidance(ctx, gh, o, c)
}

// guidance returns the repository's instructions for reviewers, for the system prompt. They are trusted, so they are
// not fenced.
func (s *Source) guidance(ctx context.Context, gh *github.Client, o origin, c settings) (string, error) {
	if c.Review.Instructions == "" {
		return "", nil
	}
	text, _, err := s.fileOf(ctx, gh, o, o.Base, c.Review.Instructions, 4*maxGuidance)
	if text = untrusted.Cut(untrusted.Plain(text), maxGuidance); err != nil || text == "" {
		return "", err
	}
	return "The repository's own instructions for reviewers, from its base branch:\n" + text + "\n", nil
}

// changed lists the files of a pull request, including old names of moved files. Beyond a thousand files it returns
// nil, because no one lists that many in the settings.
func (s *Source) changed(ctx context.Context, gh *github.Client, o origin) ([]string, error) {
	var all []string
	n := 0
	for f, err := range s.files(ctx, gh, o) {
		if err != nil {
			return nil, s.sorted("read the files of "+o.String(), err)
		}
		if n++; n > 1000 {
			return nil, nil
		}
		all = append(all, f.GetFilename())
		if old := f.GetPreviousFilename(); old != "" {
			all = append(all, old)
		}
	}
	return all, nil
}

// VerificationCommands returns the commands that should succeed before work is published, from a repository's settings
// on a branch: all of them, or an error.
func (s *Source) VerificationCommands(ctx context.Context, repo, base string) ([]string, error) {
	o := origin{Repo: repo}
	gh, err := s.client(ctx, o)
	if err != nil {
		return nil, s.sorted("reach "+repo, err)
	}
	c, _, err := s.settings(ctx, gh, o, base)
	if err == nil && c.Unread {
		err = &tasks.InputError{Sentence: "Not all checks in " + settingsFile + " of " + repo + " can be read."}
	}
	return c.Checks, err
}

// limits returns the limits of a review and the invalid settings. If the settings are permanently unreadable, the
// defaults apply.
func (r *report) limits(ctx context.Context) (review.Limits, []string, error) {
	l := review.Limits{Max: 6, Floor: review.Minor}
	c, unknown, err := r.source.settings(ctx, r.gh, r.origin, r.origin.Base)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		r.log.Warn("review without the repository's settings", "why", input.Sentence)
		return l, nil, nil
	}
	if err != nil {
		return l, nil, err
	}
	if c.Review.MaxFindings > 0 {
		l.Max = c.Review.MaxFindings
	}
	if c.Review.Severity != "" {
		l.Floor = review.Severity(c.Review.Severity)
	}
	return l, unknown, nil
}

// misunderstood formats the errors in the repository's settings for a comment.
func misunderstood(unknown []string) string {
	if len(unknown) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n#### `" + settingsFile + "`\n")
	for _, one := range unknown {
		b.WriteString("\n- " + markdown.NeutralLine(one))
	}
	return b.String()
}
