package slack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
)

// What comes of repositories that are only watched is told in a channel. The first notice of a pull request there is a message of its own;
// those that follow stand in its thread.

// Watches reports whether what comes of a repository is told in a channel.
func (s *Source) Watches(repo string) bool { return s.channelFor(repo) != "" }

// channelFor is that channel, empty where there is none.
func (s *Source) channelFor(repo string) string {
	for name, channel := range s.cfg.Results {
		if strings.EqualFold(name, repo) {
			return channel
		}
	}
	return ""
}

// Tell says a notice once, however often it is called with it. An *tasks.ErrLater says when to try again. No refusal of Slack's is the last word:
// the app may yet be invited to the channel.
func (s *Source) Tell(ctx context.Context, n tasks.Notice) error {
	err := s.notify(ctx, n)
	if code(err) == threadGone { // somebody has deleted the message that it began with
		err = s.notify(ctx, n)
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &tasks.ErrLater{At: s.cfg.Now().Add(limited.RetryAfter), Why: slackLimit}
	}
	return err
}

// threadGone is Slack's word for a message that is not there any more.
const threadGone = "thread_not_found"

func (s *Source) notify(ctx context.Context, n tasks.Notice) error {
	b := noticeboard{Source: s, channel: s.channelFor(n.Task.Repo), pull: n.PullRequest}
	o, err := b.take(ctx, finalMarker(n.Task, n.Ending))
	if err != nil || o.TS != "" && n.Quiet {
		return err
	}
	f := found{status: map[string][]string{}, parts: map[marker]bool{}, files: map[string]bool{}}
	if o.TS != "" {
		f, err = s.find(ctx, o, n.Task)
		if code(err) == threadGone {
			return errors.Join(b.leave(ctx, o.TS), err)
		}
		if blind(err) {
			s.log.Error("post notice without looking for an earlier one: the app lacks the scope channels:history or groups:history", "run", n.Task.ID, "err", err)
			err = nil
		}
		if err == nil {
			err = b.settle(ctx, o.TS)
		}
		if err != nil {
			return err
		}
	}
	list, whole := s.composed(n)
	if o.TS == "" {
		if o.TS, err = s.first(ctx, o, f, list[0]); err == nil {
			err = b.settle(ctx, o.TS)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range list {
		if err := s.put(ctx, o, f, p); err != nil {
			return err
		}
	}
	if whole == "" {
		return nil
	}
	err = s.share(ctx, o, f, list[0].mark, "All of it:", whole)
	if refused(err) {
		s.log.Warn("post a notice's file", "run", n.Task.ID, "err", err)
		return nil
	}
	return err
}

// first posts the beginning of a notice to the channel and notes that it did. What Slack does not take for a message with blocks goes on in
// plain text.
func (s *Source) first(ctx context.Context, o origin, f found, p part) (ts string, err error) {
	mark := p.mark
	ts, err = s.post(ctx, o, mark, p.message(maxPreview)...)
	if unfit(err) {
		s.log.Warn("post in plain text", "run", mark.task, "err", err)
		mark.part += ".1"
		ts, err = s.post(ctx, o, mark, slack.MsgOptionText(p.plain()[0], false))
	}
	f.parts[mark] = err == nil
	return ts, err
}

// composed divides a notice into parts. Of what takes more of them than people read only the beginning is said; whole is then what belongs
// into a file.
func (s *Source) composed(n tasks.Notice) (list []part, whole string) {
	list = s.noticeParts(n)
	if len(list) <= maxParts {
		return list, ""
	}
	first, last, body := list[0], list[len(list)-1], strings.TrimSpace(n.Body)
	first.body = split(first.body, maxBeginning)[0] +
		fmt.Sprintf("\n\n_This is the beginning of %d characters. All of them are in the file in the thread._", utf8.RuneCountInString(body))
	first.foot, first.buttons = last.foot, last.buttons
	return []part{first}, body
}

// noticeParts are all that there is to say. The title is a stranger's.
func (s *Source) noticeParts(n tasks.Notice) []part {
	name := fmt.Sprintf("%s#%d", n.PullRequest.Repo, n.PullRequest.Number)
	lead := escape(name)
	buttons := s.logButton(n.Task.ID)
	if webLink.MatchString(n.PullRequest.URL) {
		lead = "<" + escape(n.PullRequest.URL) + "|" + lead + ">"
		buttons = append([]button{{text: "Pull request", action: openPull, url: n.PullRequest.URL}}, buttons...)
	}
	lead = lines(lead+" "+escape(quiet(line(n.PullRequest.Title, 150))), escape(quiet(line(n.Headline, maxSentence/2))))
	foot := lines(escape(quiet(line(n.Ending.Note(), maxSentence))), dots(escape(quiet(line(n.Ending.Footer(), 200))), "run "+n.Task.ID))
	mark := finalMarker(n.Task, n.Ending)
	mark.pull = key(n.PullRequest)
	return inParts(mark, lead, n.Body, foot, buttons...)
}

// key names a pull request.
func key(p forge.PullRequest) string { return strings.ToLower(p.Repo) + "#" + strconv.Itoa(p.Number) }
