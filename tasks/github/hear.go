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

// request is the comment that requested a task.
type request struct {
	spot
	At      time.Time `json:"at"`
	URL     string    `json:"html_url"`
	Command string    `json:"command,omitempty"` // empty: a mention
	Words   string    `json:"words,omitempty"`   // text that came with a command
	Bot     bool      `json:"bot,omitempty"`     // it is by a listed bot
}

// hear handles a comment that mentions errand or begins with a command.
func (s *Source) hear(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	return s.handleComment(ctx, desk, *d.remark)
}

// handleComment does what a comment requests.
func (s *Source) handleComment(ctx context.Context, desk *tasks.Desk, h heard) (said string, err error) {
	text, named, err := s.addressed(ctx, h)
	if err != nil {
		return "", err
	}
	command, words := readCommand(text)
	unknown := named && command == "" && slash.MatchString(text)
	if !named && command == "" {
		return "", ignored{"It is not addressed to errand.", slog.LevelDebug}
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
		return "", ignored{"Only people may do this.", slog.LevelInfo}
	case findCommand(command).control != nil:
		return s.obey(ctx, desk, h, command)
	case unknown:
		h.after(func(ctx context.Context) { s.postNote(ctx, h, notDone, unknownCommand) })
		return "Unknown command.", nil
	}
	said, err = s.order(ctx, desk, h, command, words)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		h.after(func(ctx context.Context) { s.postNote(ctx, h, notDone, input.Sentence) })
	}
	return said, err
}

// addressed returns a comment without the mentions of errand, and whether there were any. Comments that are not
// addressed to errand, or whose author does not count, are ignored.
func (s *Source) addressed(ctx context.Context, h heard) (text string, named bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	me, err := s.forge.Login(ctx)
	switch {
	case s.cfg.Repository != nil && !s.cfg.Repository(h.repo):
		return "", false, ignored{"Repository " + h.repo + " is not configured.", slog.LevelInfo}
	case h.bot && !s.mayAsk(h.author):
		return "", false, ignored{"The author is a bot.", slog.LevelDebug}
	case ours(h.body), strings.EqualFold(h.author, me):
		return "", false, ignored{"The author is errand.", slog.LevelDebug}
	}
	text = untrusted.Visible(h.body)
	if command, _ := readCommand(text); err != nil && (command != "" || !strings.Contains(text, "@")) {
		return text, false, nil // without a login there are no mentions; or errand is addressed anyway
	}
	text, named = cutMention(text, me)
	return text, named, err
}

// order submits the task that a comment requests, by a command or a mention.
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

// orderOf returns that task.
func (s *Source) orderOf(ctx context.Context, h heard, w work, command, words string) (draft, error) {
	pr, err := s.pull(ctx, h)
	if err != nil {
		return draft{}, err
	}
	o := asItIs(h.repo, pr)
	if h.issue != nil { // the state at that time: the event may be late, and the pull request was read just now
		o.Title, o.Body = described(h.issue.GetTitle(), h.issue.GetBody())
	}
	o.Installation, o.Action, o.Full = h.installation, "asked", w.full
	o.Asked = &request{spot: h.spot, At: h.at, URL: h.url, Command: command, Words: words, Bot: h.bot}
	t := draft{Task: tasks.Task{
		ID: h.task(), Source: s.Name(), Kind: w.kind, Thread: h.thread(), Class: tasks.Interactive, Profile: profileOf(pr, w.profile),
		Repo: h.repo, Ref: fmt.Sprintf("refs/pull/%d/head", h.number), Actor: h.author, Prompt: words,
	}}
	if w.apart {
		t.Thread = h.thread() + "/review"
	}
	if w.apart || hub.IsFork(pr) { // of a fork, only the approved head
		t.Ref = o.Head
	}
	switch {
	case hub.IsFork(pr) && h.bot:
		return t, ignored{"Only people can approve the review of a fork.", slog.LevelInfo}
	case hub.IsFork(pr) && w.profile == agent.Write && command != "":
		return t, &tasks.InputError{Sentence: "The branch is in a fork, and I only change branches of this repository. I can review it."}
	case hub.IsFork(pr) && movedSince(pr, h.at):
		return t, &tasks.InputError{Sentence: "The head of the pull request has moved since you wrote that. Look at the new head and repeat the command."}
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

// wordless is the request of a comment that only mentions errand.
var wordless = map[place]string{
	inConversation: "Read the conversation and answer it.",
	onLine:         "Read this thread and answer it.",
	inReview:       "Do what this review asks for.",
}

// pull returns the pull request of a comment, read now if the event does not contain it.
func (s *Source) pull(ctx context.Context, h heard) (*github.PullRequest, error) {
	if h.pull != nil {
		return h.pull, nil
	}
	_, pr, err := s.present(ctx, h.origin())
	return pr, err
}

// forget withdraws the task of a deleted comment, if it has not started.
func (s *Source) forget(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	h := d.remark
	done, err := desk.Withdraw(ctx, h.task())
	switch {
	case err != nil && !errors.Is(err, tasks.ErrNotFound):
		return "", err
	case !done:
		return "", ignored{"No task of this comment is waiting.", slog.LevelDebug}
	}
	return "Withdrawn " + h.task(), nil
}
