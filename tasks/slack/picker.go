package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

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
	desk    *tasks.Desk
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

// load reads a pending request; false if there is none, or not any more.
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

// keep keeps a request and returns what shows its author the menu of repositories; nil if it was shown before.
func (p *picker) keep(ctx context.Context, t tasks.Task, open *errUndecided) (after func(context.Context), _ error) {
	if p.memory == nil || len(t.Prompt)+len(t.Origin) > maxPending {
		return nil, &open.InputError
	}
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	known := false
	err = p.memo(t.ID).Change(ctx, func(r *pending) error {
		known = r.Task.ID != ""
		if !known {
			r.At = p.now()
		}
		r.Task, r.Candidates = t, open.candidates
		return nil
	})
	if err != nil || known {
		return nil, err
	}
	p.log.Info("repository asked for", "run", t.ID, "thread", t.Thread)
	return func(ctx context.Context) {
		p.react(ctx, o, eyes)
		p.show(ctx, o, t.ID, open)
	}, nil
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

// choose starts the request of a menu in the repository that was chosen. It returns a sentence for the person if it did not.
func (p *picker) choose(ctx context.Context, pressed press) (string, error) {
	_, id, _ := strings.Cut(pressed.block, "/")
	r, ok, err := p.load(ctx, id)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return p.chosen(ctx, pressed, id)
	case r.Task.Actor != pressed.origin.User || pressed.value != render.NoRepository && !slices.Contains(r.Candidates, pressed.value):
		return intake.NotAllowed, nil
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
	p.reports.showQueued(ctx, t, receipt)
	p.replaceMenu(ctx, pressed, t.Repo)
	return "", nil
}

// chosen says what has become of a request that does not wait for a choice any more.
func (p *picker) chosen(ctx context.Context, pressed press, id string) (string, error) {
	st, err := statusOf(ctx, p.desk, id)
	if err != nil {
		return "", err
	}
	if !p.guard.controls(pressed.origin.User, st.Task) {
		return intake.NotAllowed, nil
	}
	return workingIn(st.Task.Repo) + " If that is wrong, say `stop` in the thread and ask again with [repo=owner/name] at the start.", nil
}

// workingIn says where a request is worked on.
func workingIn(repo string) string {
	if repo == "" {
		return "I work on this without a repository."
	}
	return "I work on this in " + repo + "."
}

// replaceMenu shows the choice in place of the menu, by the URL that came with the choice.
func (p *picker) replaceMenu(ctx context.Context, pressed press, repo string) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text := slack.MsgOptionText(render.Escape(workingIn(repo)), false)
	_, _, _, err := p.api.SendMessageContext(ctx, pressed.origin.Channel, slack.MsgOptionReplaceOriginal(pressed.respond), text)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("replace menu", "run", pressed.block, "err", withoutURL(err)) // the URL lets its owner write there
	}
}
