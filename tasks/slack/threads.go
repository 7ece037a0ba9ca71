package slack

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// threads posts to the threads of tasks, each message once: what an earlier attempt posted, in any process, is found
// by its marker.
type threads struct{ *client }

// found holds the parts of a task's report that are already in its thread.
type found struct {
	// by task, for all tasks of the thread: ts of the status messages, the one in use last
	status map[string][]string
	// of the task's questions, and of its final messages for all its endings, including those that are another task's
	parts map[render.Marker]bool
	files map[string]bool   // names of the files that the bot has posted
	texts map[string]string // of the status messages, by ts
}

func newFound() found {
	return found{
		status: map[string][]string{}, parts: map[render.Marker]bool{}, files: map[string]bool{},
		texts: map[string]string{},
	}
}

// statusOf returns the ts of a task's status message, empty if it has none.
func (f found) statusOf(task string) string {
	list := f.status[task]
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// shows reports whether a status message shows s already.
func (f found) shows(ts string, s render.Status) bool {
	text := f.texts[ts]
	return text == s.State || strings.HasPrefix(text, s.State+" · ")
}

// final returns the marker of the final message for the latest ending after a time, and when that was; or false.
func (f found) final(after time.Time) (latest render.Marker, at time.Time, ok bool) {
	for m := range f.parts {
		micros, err := strconv.ParseInt(m.Ending, 10, 64)
		if ended := time.UnixMicro(micros); err == nil && ended.After(after) && ended.After(at) {
			latest, at, ok = m, ended.UTC(), true
		}
	}
	return latest, at, ok
}

// plain reports whether posting a part in plain text has begun.
func (f found) plain(part render.Marker) bool {
	for m := range f.parts {
		if m.Ending == part.Ending && m.Question == part.Question && strings.HasPrefix(m.Part, part.Part+".") {
			return true
		}
	}
	return false
}

// find reads what was posted after the request. Messages of other bots do not count, even with a marker of errand's: if
// there are two errands in a channel, one mention may be a task of both.
func (ts *threads) find(ctx context.Context, o origin, t tasks.Task) (found, error) {
	f := newFound()
	me, err := ts.me.get(ctx)
	if err != nil {
		return f, fmt.Errorf("find report: %w", err)
	}
	for msg, err := range ts.thread(ctx, o, o.TS, "") {
		if err != nil {
			return f, fmt.Errorf("find report: %w", err)
		}
		for _, file := range msg.Files {
			f.files[file.Name] = f.files[file.Name] || msg.User == me.user || msg.BotID == me.bot
		}
		switch m := render.MarkerOf(msg); {
		case msg.BotID != me.bot:
		case m.Is(render.StatusPart):
			f.status[m.Task] = append(f.status[m.Task], msg.Timestamp)
			f.texts[msg.Timestamp] = msg.Text
		case m.Is(render.FinalPart) && (m.Task == t.ID || slices.Contains(strings.Fields(m.Covers), t.ID)):
			f.parts[m] = true
		case m.Is(render.QuestionPart) && m.Task == t.ID:
			f.parts[m] = true
		}
	}
	return f, nil
}

// join finds the thread of a task in order to post there. Slack would post to the channel if the thread does not exist
// any more. If the app may not read the thread, it is taken to exist.
func (ts *threads) join(ctx context.Context, t tasks.Task) (o origin, f found, err error) {
	if o, err = originOf(t); err != nil {
		return o, f, err
	}
	err = patiently(ctx, talkWait, func() (err error) {
		f, err = ts.find(ctx, o, t)
		return err
	})
	if unreadable(err) {
		err = nil
	}
	return o, f, err
}

// putPatiently posts all parts in order and waits for Slack's rate limit if that is short.
func (ts *threads) putPatiently(ctx context.Context, o origin, f found, parts []render.Part) error {
	for _, p := range parts {
		if err := patiently(ctx, talkWait, func() error { return ts.put(ctx, o, f, p) }); err != nil {
			return err
		}
	}
	return nil
}

// put posts a part unless it was found, and records it. A part that Slack refuses with blocks is posted in plain text;
// once that has begun, blocks are not tried again. A part that it refuses in plain text, too, becomes a file.
func (ts *threads) put(ctx context.Context, o origin, f found, p render.Part) error {
	if f.parts[p.Mark] {
		return nil
	}
	if !f.plain(p.Mark) {
		_, err := ts.post(ctx, o, p.Mark, p.Message(render.MaxPreview)...)
		if !malformed(err) {
			f.parts[p.Mark] = err == nil
			return err
		}
		ts.log.Warn("post in plain text", "run", p.Mark.Task, "err", err)
	}
	for i, text := range p.Plain() {
		mark := p.Mark
		mark.Part += fmt.Sprintf(".%d", i+1)
		if f.parts[mark] {
			continue
		}
		_, err := ts.post(ctx, o, mark, slack.MsgOptionText(text, false))
		if malformed(err) {
			ts.log.Warn("post as a file", "run", p.Mark.Task, "err", err)
			comment := render.Lines(p.Lead, p.Foot)
			text := p.Body
			if text == "" {
				text = comment
			}
			return ts.putFile(ctx, o, f, file{p.Mark, comment, text})
		}
		if err != nil {
			return err
		}
		f.parts[mark] = true
	}
	return nil
}

// file is a text that is posted as a file, with a comment in mrkdwn.
type file struct {
	mark          render.Marker
	comment, text string
}

// putFile posts a file. Files have no metadata: one of a final message is found by its name if an earlier attempt
// posted it.
func (ts *threads) putFile(ctx context.Context, o origin, f found, put file) error {
	name := put.mark.FileName()
	if put.mark.Is(render.FinalPart) && f.files[name] {
		return nil
	}
	return ts.upload(ctx, o, name, put.comment, []byte(put.text))
}

// fileRefused reports whether Slack would refuse a file later, too, but perhaps not a message.
func fileRefused(err error) bool { return refusalOf(err) == ofForm || refusalOf(err) == ofCredential }

// later turns Slack's rate limit into the time at which to try again.
func (ts *threads) later(err error) error {
	if pause, ok := retryAfter(err); ok {
		return &tasks.ErrLater{At: ts.now().Add(pause), Why: rateLimit}
	}
	return err
}

// Pulls is the part of a [forge.Forge] that reads pull requests and marks drafts as ready.
type Pulls interface {
	PullRequest(ctx context.Context, repo string, number int) (forge.PullRequest, error)
	PullRequests(ctx context.Context, repo string) ([]forge.PullRequest, error)
	MarkReady(ctx context.Context, repo string, number int) error
}

// verb is what to do with a pull request; empty: the message says it in other words.
type verb string

const (
	look verb = "look" // review, analyse, look at, check
	fix  verb = "fix"
)

// form compiles the form of a request, in which any blank stands for every one that Unicode has: keyboards, editors and
// web pages put in others without anyone seeing it.
func form(s string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(s, `\s`, `[\s\pZ]`))
}

// The forms of requests about pull requests that are recognised without a model.
const (
	verbForm  = `(review|analy[sz]e|look\s+at|check|fix)`
	inForm    = `(?:\s+(?:in|of)\s+([\w.-]+(?:/[\w.-]+)?))?`
	pullsForm = `(?:prs|pull\s+requests)`
)

var (
	slashPull = form(`(?i)^/pr\s+` + verbForm + `\s+#?([1-9]\d{0,8})\b` + inForm)
	aboutPull = form(`(?i)^(?:please\s+)?` +
		verbForm + `\s+(?:the\s+)?(?:pr|pull\s+request)\s*#?([1-9]\d{0,8})\b` + inForm)
	verbFirst = form(`(?i)^(?:please\s+)?` + verbForm + `\b`)
	listPulls = form(`(?i)^(?:please\s+)?(?:/pr\s+list|list\s+(?:(?:the|all|open)\s+)*` +
		pullsForm + `)` + inForm + `\s*[.!?]*$`)
)

// readVerb reads what a message wants with a pull request. A branch that it names takes precedence.
func (r *request) readVerb() {
	if r.pull.number == 0 && !strings.ContainsAny(r.prompt, "123456789") {
		return // most messages: all forms have a number
	}
	m := slashPull.FindStringSubmatch(r.prompt)
	if m != nil {
		r.prompt = strings.TrimSpace(r.prompt[len("/pr"):]) // the CLI would take it for a command of the project
	} else {
		m = aboutPull.FindStringSubmatch(r.prompt)
	}
	if m != nil && r.ref == "" && r.pull.number == 0 {
		r.pull.number, _ = strconv.Atoi(m[2]) // at most nine digits
		r.pull.sure, r.perhaps = true, strings.TrimRight(m[3], ".")
	}
	if m == nil && r.pull.number > 0 {
		m = verbFirst.FindStringSubmatch(r.prompt)
	}
	switch {
	case m == nil || r.pull.number == 0:
	case strings.EqualFold(m[1], string(fix)):
		r.verb = fix
	default:
		r.verb = look
	}
}

// readListing reads a message that wants a list of the open pull requests; repo may be empty.
func readListing(text string) (repo string, ok bool) {
	m := listPulls.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return strings.TrimRight(m[1], "."), true
}

// headRef is the ref of a pull request's commits.
func headRef(p forge.PullRequest) string { return fmt.Sprintf("refs/pull/%d/head", p.Number) }
