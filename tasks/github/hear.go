package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// asked is the comment that asked for a task.
type asked struct {
	spot
	At      time.Time `json:"at"`
	URL     string    `json:"html_url"`
	Command string    `json:"command,omitempty"` // empty: a mention
	Words   string    `json:"words,omitempty"`   // what was said with a command
	Bot     bool      `json:"bot,omitempty"`     // it is a bot's, which may ask
}

// hear does what a comment asks for, if it speaks to us: by a mention, or by a command as its first line.
func (s *Source) hear(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	return s.attend(ctx, desk, *d.remark)
}

// attend does what somebody asks for.
func (s *Source) attend(ctx context.Context, desk *tasks.Desk, h heard) (said string, err error) {
	text, named, err := s.addressed(ctx, h)
	if err != nil {
		return "", err
	}
	command, words := readCommand(text)
	unknown := named && command == "" && slash.MatchString(text)
	if !named && command == "" {
		return "", ignored{"It does not speak to errand.", slog.LevelDebug}
	}
	if err := s.pace(ctx, h); err != nil {
		if _, ok := errors.AsType[ignored](err); ok {
			h.after(func(ctx context.Context) { s.sign(ctx, h, notDone) })
		}
		return "", err
	}
	if mention := command == "" && !unknown && words != ""; (findCommand(command).answers || mention) && !h.bot {
		if said, err := s.reply(ctx, desk, h, command, words); !errors.Is(err, tasks.ErrNoQuestion) {
			return said, err
		}
	}
	switch {
	case h.bot && (findCommand(command).control != nil || findCommand(command).answers):
		return "", ignored{"That is for people to say.", slog.LevelInfo}
	case findCommand(command).control != nil:
		return s.obey(ctx, desk, h, command)
	case unknown:
		h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, unknownCommand) })
		return "No command of errand's.", nil
	}
	said, err = s.order(ctx, desk, h, command, words)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, input.Sentence) })
	}
	return said, err
}

// addressed is what a comment says without the mentions of us, and whether there were any. What is not said to us, or by nobody, is ignored.
func (s *Source) addressed(ctx context.Context, h heard) (text string, named bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	me, err := s.forge.Login(ctx)
	switch {
	case s.cfg.Repository != nil && !s.cfg.Repository(h.repo):
		return "", false, ignored{"Repository " + h.repo + " is not one errand works on.", slog.LevelInfo}
	case h.bot && !s.mayAsk(h.author):
		return "", false, ignored{"It is a bot's.", slog.LevelDebug}
	case ours(h.body), strings.EqualFold(h.author, me):
		return "", false, ignored{"It is our own.", slog.LevelDebug}
	}
	text = untrusted.Visible(h.body)
	if command, _ := readCommand(text); err != nil && (command != "" || !strings.Contains(text, "@")) {
		return text, false, nil // nobody can be meant, or we are anyway
	}
	text, named = cutMention(text, me)
	return text, named, err
}

// order submits the task that a comment asks for: a command, or what a mention says.
func (s *Source) order(ctx context.Context, desk *tasks.Desk, h heard, command, words string) (said string, err error) {
	w := mentioned
	if command != "" {
		w = *findCommand(command).work
	}
	t, err := s.orderOf(ctx, h, w, command, words)
	if err != nil {
		return "", err
	}
	receipt, err := s.submit(ctx, desk, t)
	if err != nil {
		return "", err
	}
	if receipt.New {
		h.after(func(ctx context.Context) { s.sign(ctx, h, eyes) })
	}
	return "Task " + receipt.ID, nil
}

// orderOf is that task.
func (s *Source) orderOf(ctx context.Context, h heard, w work, command, words string) (draft, error) {
	pr, err := s.pull(ctx, h)
	if err != nil {
		return draft{}, err
	}
	o := asItIs(h.repo, pr)
	if h.issue != nil { // as it was then: the event may be late, and what we have been told of the pull request is of now
		o.Title, o.Body = described(h.issue.GetTitle(), h.issue.GetBody())
	}
	o.Installation, o.Action, o.Full = h.installation, "asked", w.full
	o.Asked = &asked{spot: h.spot, At: h.at, URL: h.url, Command: command, Words: words, Bot: h.bot}
	t := draft{Task: tasks.Task{
		ID: h.task(), Source: s.Name(), Kind: w.kind, Thread: h.thread(), Class: tasks.Interactive, Profile: profileOf(pr, w.profile),
		Repo: h.repo, Ref: fmt.Sprintf("refs/pull/%d/head", h.number), Actor: h.author, Prompt: words,
	}}
	if w.apart {
		t.Thread = h.thread() + "/review"
	}
	if w.apart || hub.IsFork(pr) { // of a fork nothing but the head that somebody has agreed to
		t.Ref = o.Head
	}
	switch {
	case hub.IsFork(pr) && h.bot:
		return t, ignored{"Only people let a stranger's code be looked at.", slog.LevelInfo}
	case hub.IsFork(pr) && w.profile == agent.Write && command != "":
		return t, &tasks.InputError{Sentence: "The branch is in a fork, and I change nobody's code but the repository's own. I can review it."}
	case hub.IsFork(pr) && movedSince(pr, h.at):
		return t, &tasks.InputError{Sentence: "The head of the pull request has moved since you wrote that. Have a look at it, and say it again."}
	case w.kind == "review":
		o.ApprovedBy = h.author
	}
	switch {
	case command != "" && w.kind != mentioned.kind:
		t.Prompt = strings.TrimSpace(fmt.Sprintf("%s pull request #%d of %s: %s\n\n%s", command, h.number, h.repo, o.Title, words))
	case words == "":
		t.Prompt = wordless[h.Place]
	}
	t.origin = o
	return s.expected(ctx, t, pr)
}

// wordless is what somebody asks for who only mentions us.
var wordless = map[place]string{
	inConversation: "See what was said here, and answer it.",
	onLine:         "See what was said in this thread, and answer it.",
	inReview:       "Do what this review asks for.",
}

// pull is the pull request that somebody has said something on, as it is now where the event does not tell.
func (s *Source) pull(ctx context.Context, h heard) (*github.PullRequest, error) {
	if h.pull != nil {
		return h.pull, nil
	}
	_, pr, err := s.present(ctx, h.origin())
	return pr, err
}

// forget withdraws what a comment has asked for that is not there any more, if nobody has begun with it.
func (s *Source) forget(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	h := d.remark
	done, err := desk.Withdraw(ctx, h.task())
	switch {
	case err != nil && !errors.Is(err, tasks.ErrNotFound):
		return "", err
	case !done:
		return "", ignored{"Nothing waits that it has asked for.", slog.LevelDebug}
	}
	return "Withdrawn " + h.task(), nil
}
