package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// The agent's updates and questions are comments at the place of the request. Each is found again by its mark, so that
// it is posted once, even if GitHub's response is lost.

// mayAskQuestions reports whether a person requested the task in a pull request's conversation.
func (b *briefer) mayAskQuestions(t tasks.Task) bool {
	o, err := subject.Of(t)
	return err == nil && !subject.IsAutomatic(t, o) && !o.ByBot() && !b.watched(o.Repo) && subject.Kinds[t.Kind].Asks
}

// Say posts an update by the agent.
func (s *Source) Say(ctx context.Context, t tasks.Task, text string) error {
	sum := sha256.Sum256([]byte(text))
	return s.say(ctx, t, "update-"+hex.EncodeToString(sum[:8]),
		markdown.Parts(text, hub.MaxComment-512, markdown.Bytes)...)
}

// Ask posts a question with instructions for answering it. It notifies the person who requested the task.
func (s *Source) Ask(ctx context.Context, t tasks.Task, q tasks.Question) error {
	me, err := s.forge.Login(ctx)
	if err != nil {
		return err
	}
	return s.say(ctx, t, questionOf(q), question(t, q, howToAnswer(q, me)))
}

// Settle shows the outcome of a question below it.
func (s *Source) Settle(ctx context.Context, t tasks.Task, q tasks.Question) error {
	where, m, err := s.talk(ctx, t, questionOf(q), question(t, q, outcomeOf(q)))
	if err != nil {
		return err
	}
	return where.Replace(ctx, m)
}

// postTries is how often a comment is posted if GitHub's response is lost. Posted parts are found first.
const postTries = 3

// say posts the parts that are not there yet.
func (s *Source) say(ctx context.Context, t tasks.Task, what string, parts ...string) error {
	where, m, err := s.talk(ctx, t, what, parts...)
	if err != nil {
		return err
	}
	for range postTries {
		err = where.Send(ctx, m)
		if _, limited := hub.RetryAfter(err); err == nil || limited || hub.Permanent(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// talk returns an update or question of a task as a message at the place of the request.
func (s *Source) talk(
	ctx context.Context, t tasks.Task, what string, parts ...string,
) (thread.Thread, thread.Message, error) {
	o, err := subject.Of(t)
	if err != nil {
		return thread.Thread{}, thread.Message{}, err
	}
	where, err := s.api.Reach(ctx, o.Ref)
	if err != nil {
		return thread.Thread{}, thread.Message{}, fmt.Errorf("reach %s: %w", o, err)
	}
	return where, thread.Message{Task: t.ID, What: what, To: o.Asked.Spot, Since: o.Asked.At, Parts: parts}, nil
}

// questionOf returns what the message with a question is.
func questionOf(q tasks.Question) string { return "question-" + q.Key }

// question formats a question as Markdown, with a line below it.
func question(t tasks.Task, q tasks.Question, below string) string {
	lead := "I have a question before I continue."
	if hub.IsLogin(t.Actor) {
		lead = "@" + t.Actor + ", " + lead
	}
	paragraphs := []string{lead, markdown.Neutral(q.Text)}
	if q.Consent == "" && len(q.Options) > 0 {
		list := make([]string, len(q.Options))
		for i, option := range q.Options {
			list[i] = fmt.Sprintf("%d. %s", i+1, markdown.NeutralLine(untrusted.Line(option, 300)))
		}
		paragraphs = append(paragraphs, strings.Join(list, "\n"))
	}
	return strings.Join(append(paragraphs, "---\n"+below), "\n\n") + "\n"
}

// howToAnswer returns instructions for answering a question.
func howToAnswer(q tasks.Question, me string) string {
	until := q.Until.UTC().Format("2006-01-02 15:04 UTC")
	if q.Consent != "" {
		return fmt.Sprintf("Anyone with write access can comment `%s`, `%s` (all %s calls in this task) or `%s "+
			"<reason>` until %s. After that the call is denied.",
			cmdApprove, cmdAlways, markdown.NeutralLine(untrusted.Line(q.Consent, 300)), cmdDeny, until)
	}
	what := "the answer"
	if len(q.Options) > 0 {
		what = "a number or your own words"
	}
	return fmt.Sprintf("Anyone with write access can answer until %[4]s: mention `@%[1]s`, or begin a comment with "+
		"`%[2]s`, followed by %[3]s. After that I continue without an answer.",
		strings.TrimSuffix(me, "[bot]"), cmdAnswer, what, until)
}

// outcomeOf returns the line below a question that shows its answer.
func outcomeOf(q tasks.Question) string {
	if q.Answer != nil { // first, because hidden text must not count when Outcome shortens
		a := *q.Answer
		a.By, a.Text = untrusted.Line(a.By, len(a.By)), untrusted.Line(a.Text, len(a.Text))
		q.Answer = &a
	}
	return intake.Outcome(q, markdown.NeutralLine, markdown.NeutralLine)
}
