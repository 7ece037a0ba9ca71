package slack

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// talkWait is how long one message of the agent's waits for Slack's limit on calls: nobody says it again.
const talkWait = 30 * time.Second

// Say posts the agent's words to the thread. They notify nobody.
func (s *Source) Say(ctx context.Context, t tasks.Task, text string) error {
	o, f, err := s.join(ctx, t)
	if err != nil {
		return err
	}
	return s.speak(ctx, o, f, inParts(marker{task: t.ID, part: updatePart}, "", text, ""))
}

// ReadThread gives the whole thread as it is now, as Brief gives what came before the request.
func (s *Source) ReadThread(ctx context.Context, t tasks.Task) (string, error) {
	o, err := originOf(t)
	if err != nil {
		return "", err
	}
	return s.said(ctx, o, "", "until now")
}

// Attach posts a file to the thread.
func (s *Source) Attach(ctx context.Context, t tasks.Task, name string, data []byte) error {
	o, _, err := s.join(ctx, t)
	if err != nil {
		return err
	}
	// Nothing in the comment is a link, whatever the file is called.
	comment := "`" + escape(quiet(strings.ReplaceAll(line(name, maxSentence), "`", "'"))) + "`"
	err = patiently(ctx, talkWait, func() error { return s.upload(ctx, o, name, comment, data) })
	if code(err) == "missing_scope" {
		return fmt.Errorf("the Slack app lacks the scope files:write: %w", err)
	}
	return err
}

// join finds the thread of a task in order to speak there. Where there is none any more Slack would post to the channel; where we may not
// look it is taken to be there.
func (s *Source) join(ctx context.Context, t tasks.Task) (o origin, f found, err error) {
	if o, err = originOf(t); err != nil {
		return o, f, err
	}
	err = patiently(ctx, talkWait, func() (err error) {
		f, err = s.find(ctx, o, t)
		return err
	})
	if blind(err) {
		err = nil
	}
	return o, f, err
}

// speak posts all parts in order, each after the pauses that Slack wants if they are short.
func (s *Source) speak(ctx context.Context, o origin, f found, parts []part) error {
	for _, p := range parts {
		if err := patiently(ctx, talkWait, func() error { return s.put(ctx, o, f, p) }); err != nil {
			return err
		}
	}
	return nil
}

// asked is a question with its options, in Markdown. A block of code in the question ends before them.
func asked(q tasks.Question) string {
	var b strings.Builder
	b.WriteString(markdown.Closed(strings.Trim(q.Text, "\r\n")))
	for i, option := range q.Options {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "\n%d. %s", i+1, line(option, maxSentence))
	}
	return b.String()
}

// howToAnswer tells it in mrkdwn, with the time as it is where the reader is.
func howToAnswer(q tasks.Question, me who, console string) string {
	what := "your answer"
	if len(q.Options) > 0 {
		what = "a number or your own words"
	}
	if console != "" {
		console = ", or " + console
	}
	without := "Then I go on without an answer."
	if q.Consent != "" {
		without = "Then I do without it. “" + tasks.Always + "” is for all that I am to ask about: " + escape(quiet(line(q.Consent, maxSentence))) + "."
	}
	// What stands in front of a day's name is part of the format, so that Slack writes "today" in small letters.
	until := fmt.Sprintf("<!date^%d^until {date_short_pretty} at {time}|until %s>", q.Until.Unix(), q.Until.UTC().Format("2006-01-02 15:04 UTC"))
	return fmt.Sprintf("To answer, reply in this thread with <@%s> and %s%s, %s. %s", me.user, what, console, until, without)
}
