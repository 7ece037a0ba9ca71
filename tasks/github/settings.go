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
	maxGuidance  = 20_000   // characters of what a repository tells reviewers
)

// settings reads what the people of a repository want, from its base branch alone: what a pull request brings of it counts once it is merged.
// unknown is what is in the file and means nothing, in sentences for people. The answer is a moment old at most.
func (s *Source) settings(ctx context.Context, gh *github.Client, o origin, base string) (c settings, unknown []string, err error) {
	key, now := strings.ToLower(o.Repo)+" "+base, s.cfg.Now()
	if known, ok := s.wishes.Get(key, now); ok {
		return known.settings, known.unknown, nil
	}
	text, cut, err := s.fileOf(ctx, gh, o, base, settingsFile, maxSettings)
	if err != nil {
		return settings{}, nil, err
	}
	if cut { // the rest could be anything; half a file says something else than the whole
		c.Unread, unknown = true, []string{fmt.Sprintf("The file is larger than %d KiB, and nothing of it counts.", maxSettings>>10)}
	} else {
		c, unknown = parseSettings([]byte(text))
	}
	s.wishes.Put(key, wish{c, unknown}, now)
	return c, unknown, nil
}

// wish is the settings of a branch and what is wrong with them.
type wish struct {
	settings settings
	unknown  []string
}

// fileOf reads a file of a branch; empty where there is none or a directory, and no more than the first so many bytes: cut says that there are
// more. What is larger than GitHub sends is an *tasks.InputError.
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

// expected is a task that an event is about to submit as the people of the repository want it; the error is ignored if they do not. Where GitHub
// does not say in time what they want, the worker asks again.
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
		s.log.Warn("take an event without knowing the repository's settings", "err", err)
		return t, nil
	}
	if why := c.refuses(t.Kind, o, pr, nil); why != "" {
		return t, ignored{why, slog.LevelInfo}
	}
	t.Options.Model = c.Models[t.Kind]
	return t, nil
}

// refuses says why a kind of work does not happen by itself on a pull request that changes these files, or nothing.
func (c settings) refuses(kind string, o origin, pr *github.PullRequest, files []string) string {
	switch {
	case o.byPerson():
		return ""
	case !c.on(kind):
		return "The repository's settings switch " + kind + " off."
	}
	return c.skips(pr, files)
}

// wanted asks the settings before a run: whether it is to be, as an *tasks.InputError, and what the agent is told besides.
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

// guidance is what the people of a repository want reviewers to be told, for the system prompt. It is theirs and stands outside of the fence.
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

// changed lists the files that a pull request changes, with the old names of those that were moved; nil beyond a thousand, which nobody names
// one by one.
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

// VerificationCommands returns the commands of a repository's settings on a branch that should succeed before work is published: all of
// them, or an error.
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

// limits says how much a review may say, and what in the repository's settings means nothing. Where the settings cannot be read for good, the usual
// limits hold.
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

// misunderstood is the part of a comment that says what in the repository's settings means nothing.
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
