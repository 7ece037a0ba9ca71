package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
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
	tasks.InputError // for people who cannot see a menu
	candidates       []string
}

func undecided(candidates []string) error {
	const most = 10
	list := strings.Join(candidates[:min(len(candidates), most)], ", ")
	if len(candidates) > most {
		list += ", …"
	}
	sentence := render.WhichRepository + " Ask again and begin with [repo=owner/name]: " + list +
		". Use [repo=none] to work without a repository."
	return &errUndecided{tasks.InputError{Sentence: sentence}, candidates}
}

// Unwrap lets those who cannot show a menu say the sentence.
func (e *errUndecided) Unwrap() error { return &e.InputError }

// place decides where and how a task is worked on, from its message, or else its thread, or else its channel. It
// returns an *errUndecided if several repositories remain.
func (rs *repositories) place(
	ctx context.Context, t *tasks.Task, r request, thread tasks.Thread,
) (pull *forge.PullRequest, err error) {
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
func (rs *repositories) chooseRepository(
	t *tasks.Task, r request, thread tasks.Thread,
) (candidates []string, err error) {
	t.Ref, t.Options = r.ref, withDefaults(r.options, thread.Options)
	channel := rs.ofChannel(t.Channel)
	if full, err := rs.fullName(r.perhaps); r.repo == "" && err == nil {
		r.repo = full
	}
	switch {
	case r.repo == render.NoRepository:
		t.Also = r.also // the desk refuses that
	case r.repo != "":
		if t.Repo, err = rs.fullName(r.repo); err != nil {
			return nil, err
		}
		for _, name := range r.also {
			if name, err = rs.fullName(name); err != nil {
				return nil, err
			}
			t.Also = append(t.Also, name)
		}
	case thread.Latest != "", thread.Repo != "":
		t.Repo, t.Also = thread.Repo, thread.Also
	case channel != "":
		t.Repo = channel
	case len(r.several) > 0:
		return r.several, nil
	case len(rs.names) == 1:
		t.Repo = rs.names[0]
	case len(rs.names) > 1:
		return rs.names, nil
	}
	if t.Ref != "" && t.Repo == "" {
		return nil, inputError("A branch needs a repository: write [repo=owner/name branch=%s].", t.Ref)
	}
	if (t.Ref == "" || t.Ref == thread.Ref) && strings.EqualFold(t.Repo, thread.Repo) {
		t.Ref, t.Options.Directory = thread.Ref, cmp.Or(t.Options.Directory, thread.Options.Directory)
		if thread.Profile == agent.Untrusted { // the code at that ref is still untrusted
			t.Profile = agent.Untrusted
		}
	}
	return nil, nil
}

// ofChannel returns the repository that a channel is about, or "".
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

// withDefaults completes the options of a message by those of its thread, but for the directory, which is one of a
// version of a repository.
func withDefaults(said, thread tasks.Options) tasks.Options {
	return tasks.Options{
		Model: cmp.Or(said.Model, thread.Model), Effort: cmp.Or(said.Effort, thread.Effort),
		Agent: cmp.Or(said.Agent, thread.Agent), MaxUSD: cmp.Or(said.MaxUSD, thread.MaxUSD),
		Limit: cmp.Or(said.Limit, thread.Limit), Plan: said.Plan, Directory: said.Directory,
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
		return "", inputError("There are several repositories called %q: %s. Name one of them.", name,
			strings.Join(found, ", "))
	}
	return "", inputError("I do not know a repository called %q. Write it as owner/name.", name)
}

// allows reports whether errand works on a repository. People must not learn about others, which its access to
// GitHub may show.
func (rs *repositories) allows(repo string) bool {
	return len(rs.names) == 0 || slices.ContainsFunc(rs.names, func(known string) bool {
		return strings.EqualFold(known, repo)
	})
}

// pinPull ties a task to the pull request that its message names: it works at the head. A pull request to be looked at
// is not changed, and a stranger's code is not run. A number that may be an issue's is ignored if there is no such pull
// request.
func (rs *repositories) pinPull(ctx context.Context, t *tasks.Task, r request) (*forge.PullRequest, error) {
	if r.verb == "" && rs.pulls == nil {
		return nil, nil
	}
	if t.Repo == "" {
		return nil, inputError("Name the repository of pull request #%d, for example: review PR %d in owner/name.",
			r.pull.number, r.pull.number)
	}
	p, err := rs.findPull(ctx, t.Repo, r.pull.number)
	switch {
	case errors.Is(err, forge.ErrNotFound) && r.pull.sure:
		return nil, inputError("There is no pull request #%d in %s.", r.pull.number, t.Repo)
	case errors.Is(err, forge.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case len(r.also) > 0:
		const sentence = "I work on pull request #%d in %s only. Name no other repository, or " +
			"ask for the rest without it."
		return nil, inputError(sentence, p.Number, p.Repo)
	case p.Fork && r.verb == fix:
		return nil, inputError("I cannot fix %s#%d: its branch is in a fork, and I do not run code from forks. "+
			"I can review it.", p.Repo, p.Number)
	case p.Fork:
		t.Profile = agent.Untrusted
	case r.verb == look:
		t.Profile = agent.Read
	default:
		t.Profile = agent.Write // the thread may have been at a stranger's pull request
	}
	if headRef(p) != t.Ref {
		t.Options.Directory = r.options.Directory // the thread's is one of another version
	}
	t.Ref, t.Also = headRef(p), nil
	return &p, nil
}

// findPull looks a pull request up. The forge may fail: then the event is interpreted later.
func (rs *repositories) findPull(ctx context.Context, repo string, number int) (forge.PullRequest, error) {
	if err := rs.canLook(repo); err != nil {
		return forge.PullRequest{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	p, err := rs.pulls.PullRequest(ctx, repo, number)
	return p, tasks.FromForge(err)
}

// canLook returns an error for people if errand cannot look at pull requests of a repository.
func (rs *repositories) canLook(repo string) error {
	switch {
	case rs.pulls == nil:
		return inputError("I cannot read pull requests: I have no access to GitHub.")
	case !rs.allows(repo):
		return inputError("errand is not set up for %s. An operator can add it under repositories: in errand.yaml.",
			repo)
	}
	return nil
}

// toList returns the repository whose open pull requests a message asks for: the one that it names, the thread's or the
// channel's.
func (rs *repositories) toList(channel, named string, thread tasks.Thread) (string, error) {
	t := tasks.Task{Channel: channel}
	candidates, err := rs.chooseRepository(&t, request{repo: named},
		tasks.Thread{Latest: thread.Latest, Repo: thread.Repo})
	if err != nil {
		return "", err
	}
	if rs.pulls != nil && (t.Repo == "" || len(candidates) > 0) {
		return "", inputError("Name the repository, for example: list PRs in owner/name.")
	}
	return t.Repo, rs.canLook(t.Repo)
}

const (
	// pendingLife is how long a request waits for a choice.
	pendingLife = 24 * time.Hour
	// maxPending is the size of the largest request that is kept, in bytes. With JSON's escapes it stays within a memo.
	maxPending = 40 << 10
)

// picker lets people choose the repository of a request that does not name one. It keeps the request meanwhile.
type picker struct {
	*client
	guard   *guard
	memory  intake.Memory // nil: people have to ask again
	reports *reporter
	desk    *desk.Desk
}

// pending is a request that waits for a choice; zero: none.
type pending struct {
	Task       tasks.Task `json:"task"`
	Candidates []string   `json:"candidates"`
	At         time.Time  `json:"at"`
}

// memo holds the pending request that becomes the task with that ID.
func (p *picker) memo(id string) intake.Memo[pending] {
	return intake.Memo[pending]{Memory: p.memory, Name: "slack/pending/" + id, Log: p.log}
}

// load reads a pending request; false if it does not exist or has expired.
func (p *picker) load(ctx context.Context, id string) (pending, bool, error) {
	if p.memory == nil {
		return pending{}, false, nil
	}
	r, err := p.memo(id).Load(ctx)
	return r, r.Task.ID != "" && p.now().Sub(r.At) < pendingLife, err
}

// remove forgets a pending request if there is one.
func (p *picker) remove(ctx context.Context, id string) error {
	if _, ok, err := p.load(ctx, id); !ok {
		return err
	}
	return p.memo(id).Change(ctx, func(r *pending) error {
		*r = pending{}
		return nil
	})
}

// keep keeps a request and shows its author the menu of repositories, unless it was shown before.
func (p *picker) keep(ctx context.Context, o origin, t tasks.Task, open *errUndecided) error {
	if p.memory == nil || len(t.Prompt)+len(t.Origin) > maxPending {
		return &open.InputError
	}
	known := false
	err := p.memo(t.ID).Change(ctx, func(r *pending) error {
		known = r.Task.ID != ""
		if !known {
			r.At = p.now()
		}
		r.Task, r.Candidates = t, open.candidates
		return nil
	})
	if err != nil || known {
		return err
	}
	p.log.Info("repository asked for", "run", t.ID, "thread", t.Thread)
	p.react(ctx, o, eyes)
	p.show(ctx, o, t.ID, open)
	return nil
}

// show shows the menu to the person who asked. If Slack does not allow that, it says what to write instead.
func (p *picker) show(ctx context.Context, o origin, id string, open *errUndecided) {
	text, blocks := render.RepositoryMenu(id, open.candidates)
	err := p.postEphemeral(ctx, o, slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks...))
	if err != nil && ctx.Err() == nil {
		p.log.Warn("show repositories", "run", id, "err", err)
		p.notify(ctx, o, open.Sentence)
	}
}

// choose starts the request of a menu in the repository that was chosen. It returns a sentence for the person if it
// did not.
func (p *picker) choose(ctx context.Context, pressed press) (string, error) {
	_, id, _ := strings.Cut(pressed.block, "/")
	r, ok, err := p.load(ctx, id)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return p.chosen(ctx, pressed, id)
	case r.Task.Actor != pressed.origin.User ||
		pressed.value != render.NoRepository && !slices.Contains(r.Candidates, pressed.value):
		return "", notAllowed()
	}
	t := r.Task
	if t.Repo = pressed.value; t.Repo == render.NoRepository {
		t.Repo, t.Ref = "", ""
	}
	t.Reply = new(tasks.Reply)
	receipt, err := p.desk.Submit(ctx, t) // idempotent: the first choice counts
	if _, refused := errors.AsType[*tasks.InputError](err); err == nil || refused {
		err = errors.Join(err, p.remove(ctx, t.ID))
	}
	switch {
	case err != nil:
		return "", err
	case !receipt.New:
		return p.chosen(ctx, pressed, id)
	}
	if o, err := originOf(t); err == nil {
		p.reports.showQueued(ctx, o, t, receipt)
	}
	p.replaceMenu(ctx, pressed, t.Repo)
	return "", nil
}

// chosen returns a sentence about the state of a request that no longer waits for a choice.
func (p *picker) chosen(ctx context.Context, pressed press, id string) (string, error) {
	st, err := statusOf(ctx, p.desk, id)
	if err != nil {
		return "", err
	}
	if !p.guard.controls(pressed.origin.User, st.Task) {
		return "", notAllowed()
	}
	return "", inputError("%s", workingIn(st.Task.Repo)+
		" If that is wrong, say `stop` in the thread and ask again with [repo=owner/name] at the start.")
}

// workingIn says where a request is worked on.
func workingIn(repo string) string {
	if repo == "" {
		return "I will work on this without a repository."
	}
	return "I will work on this in " + repo + "."
}

// replaceMenu shows the choice in place of the menu, by the URL that came with the choice.
func (p *picker) replaceMenu(ctx context.Context, pressed press, repo string) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text := slack.MsgOptionText(render.Escape(workingIn(repo)), false)
	_, _, _, err := p.api.SendMessageContext(ctx, pressed.origin.Channel,
		slack.MsgOptionReplaceOriginal(pressed.respond), text)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("replace menu", "run", pressed.block, "err", withoutURL(err)) // the URL lets its owner write there
	}
}
