package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// repositories decides where requests are worked on.
type repositories struct {
	names    []string // "owner/name" of all repositories that errand works on; empty: not known
	channels func(channel string) (repository string, ok bool)
	reader   reader
	pulls    Pulls
	log      *slog.Logger
}

// errUndecided is the mistake of a request that does not say which repository it is about.
type errUndecided struct {
	tasks.InputError // for people to whom no menu can be shown
	candidates       []string
}

func undecided(candidates []string) error {
	const most = 10
	list := strings.Join(candidates[:min(len(candidates), most)], ", ")
	if len(candidates) > most {
		list += ", …"
	}
	sentence := render.WhichRepository + " Ask again and begin with [repo=owner/name]: " + list + ". With [repo=none] I work without a repository."
	return &errUndecided{tasks.InputError{Sentence: sentence}, candidates}
}

// Unwrap lets those who cannot show a menu say the sentence.
func (e *errUndecided) Unwrap() error { return &e.InputError }

// place decides where a task is worked on and how: as its message says, else as its thread does, else in the repository of its channel. It
// returns an *errUndecided if that leaves a choice.
func (rs *repositories) place(ctx context.Context, t *tasks.Task, r request, thread tasks.Thread) (pull *forge.PullRequest, err error) {
	candidates, err := rs.chooseRepository(t, r, thread)
	switch {
	case err != nil:
		return nil, err
	case r.pull.number > 0:
		return rs.pinPull(ctx, t, r)
	case len(candidates) > 0:
		return nil, undecided(candidates)
	}
	return nil, nil
}

// chooseRepository sets the repository, branch and options of a task, or returns the repositories that it may be about.
func (rs *repositories) chooseRepository(t *tasks.Task, r request, thread tasks.Thread) (candidates []string, err error) {
	t.Ref, t.Options = r.ref, withDefaults(r.options, thread.Options)
	channel := rs.ofChannel(t.Channel)
	if full, err := rs.fullName(r.perhaps); r.repo == "" && err == nil {
		r.repo = full
	}
	switch {
	case r.repo == render.NoRepository:
	case r.repo != "":
		t.Repo, err = rs.fullName(r.repo)
	case thread.Latest != "", thread.Repo != "":
		t.Repo = thread.Repo
	case channel != "":
		t.Repo = channel
	case len(r.several) > 0:
		return r.several, nil
	case len(rs.names) == 1:
		t.Repo = rs.names[0]
	case len(rs.names) > 1:
		return rs.names, nil
	}
	if err == nil && t.Ref != "" && t.Repo == "" {
		err = inputError("A branch needs a repository: write [repo=owner/name branch=%s].", t.Ref)
	}
	if t.Ref == "" && strings.EqualFold(t.Repo, thread.Repo) {
		t.Ref = thread.Ref
		if thread.Profile == agent.Untrusted { // the code at that ref is still untrusted
			t.Profile = agent.Untrusted
		}
	}
	return nil, err
}

// ofChannel returns the repository that a channel is about, empty if there is none.
func (rs *repositories) ofChannel(channel string) string {
	if rs.channels == nil {
		return ""
	}
	repo, ok := rs.channels(channel)
	if !ok {
		return ""
	}
	return repo
}

// withDefaults completes the options of a message by those of its thread.
func withDefaults(said, thread tasks.Options) tasks.Options {
	return tasks.Options{
		Model: cmp.Or(said.Model, thread.Model), Effort: cmp.Or(said.Effort, thread.Effort), Agent: cmp.Or(said.Agent, thread.Agent),
		MaxUSD: cmp.Or(said.MaxUSD, thread.MaxUSD), Limit: cmp.Or(said.Limit, thread.Limit), Plan: said.Plan,
	}
}

// fullName returns the full name of a repository. The name without its owner is enough if only one repository has it.
func (rs *repositories) fullName(name string) (string, error) {
	var found []string
	for _, full := range rs.names {
		_, short, _ := strings.Cut(full, "/")
		if strings.EqualFold(full, name) || strings.EqualFold(short, name) {
			found = append(found, full)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case fullForm.MatchString(name):
		return name, nil // the desk knows whether errand works on it
	case len(found) > 1:
		return "", inputError("There are several repositories called %q: %s. Write which one.", name, strings.Join(found, ", "))
	}
	return "", inputError("I know no repository called %q: write it as owner/name.", name)
}

// allows reports whether errand works on a repository. People must not learn about others, which its access to GitHub may show.
func (rs *repositories) allows(repo string) bool {
	return len(rs.names) == 0 || slices.ContainsFunc(rs.names, func(known string) bool { return strings.EqualFold(known, repo) })
}

// pinPull ties a task to the pull request that its message names: it works at the head. A pull request to be looked at is not changed, and a
// stranger's code is not run. A number that may be an issue's is ignored if there is no such pull request.
func (rs *repositories) pinPull(ctx context.Context, t *tasks.Task, r request) (*forge.PullRequest, error) {
	if r.verb == "" && rs.pulls == nil {
		return nil, nil
	}
	if t.Repo == "" {
		return nil, inputError("Which repository is pull request #%d of? Write for example: review PR %d in owner/name.", r.pull.number, r.pull.number)
	}
	p, err := rs.findPull(ctx, t.Repo, r.pull.number)
	switch {
	case errors.Is(err, forge.ErrNotFound) && r.pull.sure:
		return nil, inputError("There is no pull request #%d in %s.", r.pull.number, t.Repo)
	case errors.Is(err, forge.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case p.Fork && r.verb == fix:
		return nil, inputError("I cannot fix %s#%d: its branch is in a fork, and I do not run code from forks. I can review it.", p.Repo, p.Number)
	case p.Fork:
		t.Profile = agent.Untrusted
	case r.verb == look:
		t.Profile = agent.Read
	default:
		t.Profile = agent.Write // the thread may have been at a stranger's pull request
	}
	t.Ref = headRef(p)
	return &p, nil
}

// findPull looks a pull request up within the time that Slack waits for an answer.
func (rs *repositories) findPull(ctx context.Context, repo string, number int) (forge.PullRequest, error) {
	if err := rs.canLook(repo); err != nil {
		return forge.PullRequest{}, err
	}
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	p, err := rs.pulls.PullRequest(limited, repo, number)
	err = tasks.FromForge(err)
	if _, told := errors.AsType[*tasks.InputError](err); err != nil && !told && !errors.Is(err, forge.ErrNotFound) {
		rs.log.Warn("look at pull request", "err", err)
		return p, inputError("GitHub did not answer in time about %s#%d. Ask again in a moment.", repo, number)
	}
	return p, err
}

// canLook says why pull requests of a repository cannot be looked at, if they cannot.
func (rs *repositories) canLook(repo string) error {
	switch {
	case rs.pulls == nil:
		return inputError("I cannot look at pull requests: I have no access to GitHub here.")
	case !rs.allows(repo):
		return inputError("Repository %s is not one errand works on. An operator can add it under repositories: in errand.yaml.", repo)
	}
	return nil
}

// toList decides of which repository a message wants the open pull requests: of the one that it names, of the thread's or of the channel's.
func (rs *repositories) toList(channel, named string, thread tasks.Thread) (string, error) {
	t := tasks.Task{Channel: channel}
	candidates, err := rs.chooseRepository(&t, request{repo: named}, tasks.Thread{Latest: thread.Latest, Repo: thread.Repo})
	if err != nil {
		return "", err
	}
	if rs.pulls != nil && (t.Repo == "" || len(candidates) > 0) {
		return "", inputError("Which repository's? Write for example: list PRs in owner/name.")
	}
	return t.Repo, rs.canLook(t.Repo)
}
