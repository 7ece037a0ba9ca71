package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// reporter shows tasks in their threads: a status message that is edited while a task waits and runs, the final
// message, and what the agent says and asks meanwhile.
type reporter struct {
	*threads
	console  render.Console
	interval time.Duration // between two edits of a status message
	memory   intake.Memory // of direct messages; nil: none are sent

	nativeFrom atomic.Int64 // when status below threads may be set again, in Unix time
}

// report is the report of one task.
type report struct {
	*reporter
	task   tasks.Task
	origin origin
	log    *slog.Logger

	progress *progress

	// what Slack shows below the thread, unless it has removed it; until progress is closed, of its goroutine
	native   string
	nativeAt time.Time // when it was set
}

// Open finds the task's status message or posts it. If Slack does not allow that, the report goes on without.
func (rs *reporter) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	r := &report{
		reporter: rs, task: t, origin: o, log: rs.log.With("run", t.ID, "thread", t.Thread),
		progress: newProgress(rs.now),
	}
	shown := r.progress.status()
	d, posted, err := rs.openStatus(ctx, o, t, shown)
	if err != nil {
		r.log.Warn("report without status", "err", err)
		return r, nil
	}
	if !posted {
		shown = render.Status{} // the message may say anything
	}
	r.progress.keep(ctx, shown, rs.interval, func(s render.Status) error {
		// The edits have ctx, which Close does not end: an aborted edit could still arrive, after the last one.
		err := d.show(ctx, s, rs.console.RunButtons(t.ID))
		d.logFirst(ctx, err)
		r.showNative(ctx, r.progress.doing())
		return err
	})
	return r, nil
}

// openStatus returns a task's status message. Without one, it posts a message that shows s.
func (rs *reporter) openStatus(
	ctx context.Context, o origin, t tasks.Task, s render.Status,
) (d *display, posted bool, err error) {
	f, err := rs.find(ctx, o, t)
	d = &display{client: rs.client, origin: o, ts: f.statusOf(t.ID), log: rs.log.With("run", t.ID, "thread", t.Thread)}
	if err != nil || d.ts != "" {
		return d, false, err
	}
	return d, true, d.post(ctx, render.StatusMarker(t), s, rs.console.RunButtons(t.ID))
}

// showQueued shows that a request waits for others of its thread, in the message that will show its run. A request that
// the live run takes up does not wait.
func (rs *reporter) showQueued(ctx context.Context, o origin, t tasks.Task, r desk.Receipt) {
	if r.Joins || r.Position == 0 {
		return
	}
	_, _, err := rs.openStatus(ctx, o, t, render.Headline(tasks.QueuedHeadline(r.Position)))
	if err != nil && ctx.Err() == nil {
		rs.log.Warn("show waiting task", "run", t.ID, "thread", t.Thread, "err", err)
	}
}

// Waits shows why a request waits, in the message that will show its run.
func (rs *reporter) Waits(ctx context.Context, t tasks.Task, h tasks.Headline) error {
	o, err := originOf(t)
	if err != nil {
		return err
	}
	s := render.Headline(h)
	d, posted, err := rs.openStatus(ctx, o, t, s)
	if err != nil || posted {
		return err
	}
	err = d.show(ctx, s, rs.console.RunButtons(t.ID))
	if errors.Is(err, errNoDisplay) { // later, too
		d.logFirst(ctx, err)
		return nil
	}
	return err
}

// Final finds a task's final message in its thread. It returns nil if the app may not read the thread.
func (rs *reporter) Final(ctx context.Context, t tasks.Task, after time.Time) (*tasks.Ending, error) {
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	f, err := rs.find(ctx, o, t)
	if gone(err) || unreadable(err) {
		return nil, nil
	}
	m, at, ok := f.final(after)
	if err != nil || !ok {
		return nil, rs.later(err)
	}
	return &tasks.Ending{Kind: tasks.Answered, At: at, Covers: strings.Fields(m.Covers)}, nil
}

// Update shows what the agent does, now and then.
func (r *report) Update(e agent.Event) { r.progress.add(e) }

// Close posts the parts of the final message that are not in the thread yet, in order, and then ends the status
// message. An error means that some of it may be missing.
func (r *report) Close(ctx context.Context, e tasks.Ending) error {
	if err := r.progress.writer.Close(ctx); err != nil {
		return err
	}
	defer r.showNative(ctx, "")
	f, err := r.find(ctx, r.origin, r.task)
	if e.Kind == tasks.Withdrawn {
		return r.withdraw(ctx, f, err)
	}
	if unreadable(err) {
		// it may be posted twice; otherwise hours of work would not be posted at all
		r.log.Error(noHistoryScope, "err", err)
		err = nil
	}
	if _, at, ok := f.final(e.Retried); ok && !at.Equal(e.At.Truncate(time.Microsecond)) {
		r.log.Warn("final message skipped: one is posted for an ending that is missing in Redis", "ended", at)
	} else if err == nil && !e.Found {
		err = r.postFinal(ctx, r.origin, f, r.final(e), e)
	}
	if err != nil {
		return r.unposted(ctx, e, err)
	}
	return r.endAll(ctx, f, e)
}

// final returns the parts of the final message.
func (r *report) final(e tasks.Ending) []render.Part {
	return r.console.Final(r.task, r.origin.User, e)
}

// postFinal posts the parts of a final message that are not in its place yet.
func (r *report) postFinal(ctx context.Context, o origin, f found, list []render.Part, e tasks.Ending) error {
	body := strings.TrimSpace(e.Body())
	if first, long := render.Beginning(list, body, "the file above"); long {
		err := r.putFile(ctx, o, f, file{list[0].Mark, "The whole answer:", body})
		switch {
		case fileRefused(err):
			r.log.Warn("post all of a long answer", "err", err)
		case err != nil:
			return err
		default:
			list = []render.Part{first}
		}
	}
	for _, p := range list {
		if err := r.put(ctx, o, f, p); err != nil {
			return err
		}
	}
	return nil
}

// unposted says what an error of Slack means for the final message. Only a thread that was deleted is final: the bot
// may be invited again, and an archived channel opened.
func (r *report) unposted(ctx context.Context, e tasks.Ending, err error) error {
	kind := refusalOf(err)
	failed := &tasks.UnpostedError{Why: complaint(err), Final: kind == ofThread, Err: r.later(err)}
	if kind != ofPlace && kind != ofForm || r.now().Sub(e.At) < directAfter {
		return failed
	}
	sent, err := r.sendDirectly(ctx, e, failed.Why)
	if err != nil {
		r.log.Warn("send final message directly", "err", err)
	}
	if sent {
		failed.Why += "; the person who asked has it as a direct message"
	}
	return failed
}

// directAfter is how long a place has to refuse a final message before the person who asked gets it directly: the bot
// may only have been out of the channel for a moment.
const directAfter = time.Minute

// sendDirectly sends the final message to the person who asked, once, because its place refuses it. Webhooks and
// workflows read no messages.
func (r *report) sendDirectly(ctx context.Context, e tasks.Ending, why string) (sent bool, err error) {
	if r.memory == nil || !userForm.fits(r.origin.User) {
		return false, nil
	}
	list := r.final(e)
	memo := intake.Memo[directMessage]{
		Memory: r.memory, Name: "slack/direct/" + r.task.ID + "/" + list[0].Mark.Ending, Log: r.log,
	}
	earlier, err := memo.Load(ctx)
	if err != nil {
		return false, err
	}
	list[0].Lead = render.Lines(fmt.Sprintf("I could not post this in the thread in <#%s>: %s.", r.origin.Channel,
		render.Literal(why, render.MaxSentence)), list[0].Lead)
	o := origin{Team: r.origin.Team, Channel: r.origin.User, User: r.origin.User}
	for i := earlier.Parts; i < len(list); i++ {
		if err := recordSent(ctx, memo, i+1); err != nil {
			return false, err
		}
		if err := r.put(ctx, o, newFound(), list[i]); err != nil {
			return false, errors.Join(err, recordSent(context.WithoutCancel(ctx), memo, i))
		}
	}
	return true, nil
}

// directMessage is what is remembered of a final message that was sent to the person who asked.
type directMessage struct {
	Parts int `json:"parts"` // sent so far
}

// recordSent records how many parts of a direct message were sent. It is called before each is sent, because the bot
// may not look into the conversation for what an earlier attempt sent: a crash in between loses a part of the copy, and
// nothing is sent twice. The page of the task has the answer, and the thread gets it once it can be posted there.
func recordSent(ctx context.Context, memo intake.Memo[directMessage], parts int) error {
	return memo.Change(ctx, func(m *directMessage) error {
		m.Parts = parts
		return nil
	})
}

// withdraw removes the status of a request that was deleted. err is why f is not known. There is no answer that people
// could miss.
func (r *report) withdraw(ctx context.Context, f found, err error) error {
	if refusalOf(err) == ofThread || unreadable(err) {
		return nil
	}
	for _, ts := range f.status[r.task.ID] {
		if err == nil {
			err = r.remove(ctx, r.origin, ts)
		}
	}
	if err == nil {
		return nil
	}
	return &tasks.UnpostedError{Why: complaint(err), Shown: true, Err: r.later(err)}
}

// endAll ends the status messages of a task and of those that its run absorbed, which have theirs from when they had to
// wait. The final message is posted by now.
func (r *report) endAll(ctx context.Context, f found, e tasks.Ending) error {
	failed := errors.Join(r.removeEyes(ctx, r.origin), r.endStatus(ctx, f, r.task.ID, e))
	for _, id := range e.Covers {
		failed = errors.Join(failed, r.removeEyes(ctx, r.origin.at(id)), r.endStatus(ctx, f, id, e))
	}
	if failed == nil {
		return nil
	}
	return &tasks.UnpostedError{Why: complaint(failed), Shown: true, Err: r.later(failed)}
}

// endStatus edits the status messages of a task for the last time; there are two if two processes posted one at the
// same moment.
func (r *report) endStatus(ctx context.Context, f found, id string, e tasks.Ending) (failed error) {
	last := render.Ended(e)
	for _, ts := range f.status[id] {
		if f.shows(ts, last) {
			continue // an earlier attempt has edited it
		}
		d := &display{client: r.client, origin: r.origin, ts: ts, log: r.log}
		r.awaitLastEdit(ctx, r.origin)
		err := d.edit(ctx, last, r.console.LogButton(id))
		if errors.Is(err, errNoDisplay) {
			r.log.Warn("end status", "err", err)
		} else if err != nil {
			failed = errors.Join(failed, fmt.Errorf("end status: %w", err))
		}
	}
	return failed
}

// progress is what a status message shows of a run, and shows it.
type progress struct {
	writer *intake.Writer // nil without a status message
	now    func() time.Time
	began  time.Time

	mu      sync.Mutex
	working bool
	asking  int // open questions
	action  string
	steps   int // tool calls that came back
}

func newProgress(now func() time.Time) *progress {
	return &progress{now: now, began: now()}
}

// add records an event. It does not block.
func (p *progress) add(e agent.Event) {
	p.mu.Lock()
	changed := !p.working
	p.working = true
	switch e.Kind {
	case agent.ToolUse:
		p.action, changed = e.Text, true
	case agent.ToolResult:
		p.steps, changed = p.steps+1, true
	case tasks.Asked:
		p.asking, changed = p.asking+1, true
	case tasks.Replied:
		p.asking, changed = p.asking-1, true
	}
	p.mu.Unlock()
	if changed { // not by the pieces of an answer, which are many
		p.writer.Changed()
	}
}

func (p *progress) status() render.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.working:
		return render.Begun()
	case p.asking > 0:
		return render.Headline(tasks.Headline{Sign: "💬", State: tasks.NeedsAnswer})
	}
	return render.Working(p.action, p.steps, p.now().Sub(p.began))
}

// keep begins to write the status whenever it has changed, but not more often than once per interval, nor before a rate
// limit ends. That ends with ctx or the writer's Close, or when there is nothing to write on any more.
func (p *progress) keep(
	ctx context.Context, last render.Status, interval time.Duration, write func(render.Status) error,
) {
	written := func(s render.Status) (pause time.Duration, ok bool) {
		err := write(s)
		if errors.Is(err, errNoDisplay) {
			return intake.NoMore, true
		}
		limit, limited := retryAfter(err)
		return max(interval, limit), !limited
	}
	p.writer = intake.StartWriter(ctx, intake.Writing[render.Status]{
		Value: p.status, Write: written, Refresh: time.Minute, Last: last, Pause: interval,
	})
}

// talkWait is how long a message of the agent's waits for Slack's rate limit: it is not posted again later.
const talkWait = 30 * time.Second

// Say posts the agent's words to the thread. They notify nobody.
func (rs *reporter) Say(ctx context.Context, t tasks.Task, text string) error {
	o, f, err := rs.join(ctx, t)
	if err != nil {
		return err
	}
	return rs.putPatiently(ctx, o, f, render.Parts(render.Marker{Task: t.ID, Part: render.UpdatePart}, "", text, ""))
}

// Attach posts a file to the thread.
func (rs *reporter) Attach(ctx context.Context, t tasks.Task, name string, data []byte) error {
	o, _, err := rs.join(ctx, t)
	if err != nil {
		return err
	}
	// As code, so that no file name makes a link.
	comment := "`" + render.Literal(strings.ReplaceAll(name, "`", "'"), render.MaxSentence) + "`"
	err = patiently(ctx, talkWait, func() error { return rs.upload(ctx, o, name, comment, data) })
	if code(err) == "missing_scope" {
		return fmt.Errorf("the Slack app lacks the scope files:write: %w", err)
	}
	return err
}

// Ask posts a question that notifies the person who asked for the task, and says how to answer it.
func (rs *reporter) Ask(ctx context.Context, t tasks.Task, q tasks.Question) error {
	o, f, err := rs.join(ctx, t)
	if err != nil {
		return err
	}
	me, err := rs.me.get(ctx)
	if err != nil {
		return err
	}
	foot := rs.console.HowToAnswer(t, q, me.user)
	return rs.putPatiently(ctx, o, f, render.Question(t, o.User, q, foot, render.AnswerButtons(t, q)...))
}

// Settle shows the answer below a question, in place of its buttons. A question that was posted in plain text stays
// as it is.
func (rs *reporter) Settle(ctx context.Context, t tasks.Task, q tasks.Question) error {
	o, err := originOf(t)
	if err != nil {
		return err
	}
	list := render.Question(t, o.User, q, render.Outcome(q, person))
	last := list[len(list)-1]
	for m, err := range rs.thread(ctx, o, o.TS, "") {
		if err != nil {
			return fmt.Errorf("find question: %w", err)
		}
		if render.MarkerOf(m) != last.Mark {
			continue
		}
		rs.awaitLastEdit(ctx, o)
		return rs.edit(ctx, o, m.Timestamp, last.Message(render.MaxEdit)...)
	}
	return nil
}

// person renders who gave an answer. An edited message notifies nobody, so users are mentioned.
func person(by string) string {
	if userForm.fits(by) {
		return "<@" + by + ">"
	}
	return render.Escape(render.NoPings(by))
}
