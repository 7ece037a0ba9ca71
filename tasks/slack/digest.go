package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// digest posts the results of repositories that are only watched to a channel, and those of tasks that no person asked
// for. The first notice of a pull request, or of a task's thread, begins a thread there; the others go into that
// thread.
type digest struct {
	*threads
	console render.Console
	results map[string]string // channels, by "owner/name"
	others  map[string]string // further channels, by whose results go there
	memory  intake.Memory
}

// Watches reports whether the results of a repository go to a channel.
func (d *digest) Watches(repo string) bool { return d.channelOf(repo) != "" }

// channelOf returns that channel, or "".
func (d *digest) channelOf(repo string) string {
	for name, channel := range d.results {
		if strings.EqualFold(name, repo) {
			return channel
		}
	}
	return ""
}

// Tell posts a notice once, however often it is called. An *tasks.ErrLater says when to try again. No refusal by Slack
// is permanent: the app may be invited to the channel later.
func (d *digest) Tell(ctx context.Context, n tasks.Notice) error {
	t := &digestThread{
		digest: d, channel: cmp.Or(n.Channel, d.channelOf(n.Task.Repo)), key: render.NoticeKey(n), subject: subject(n),
	}
	err := t.tell(ctx, n)
	if code(err) == threadGone { // its first message was deleted
		err = t.tell(ctx, n)
	}
	return d.later(err)
}

// subject returns what requests in the thread of a notice start from: its pull request, or the work of its task.
func subject(n tasks.Notice) tasks.Thread {
	p := n.PullRequest
	switch {
	case p.Number == 0 && n.Ending.Published != nil:
		return tasks.Thread{Repo: n.Ending.Published.Repo, Ref: n.Ending.Published.Branch, Profile: n.Task.Profile}
	case p.Number == 0:
		return tasks.Thread{Repo: n.Task.Repo, Ref: n.Task.Ref, Profile: n.Task.Profile}
	case p.Fork:
		return tasks.Thread{Repo: p.Repo, Ref: headRef(p), Profile: agent.Untrusted}
	}
	return tasks.Thread{Repo: p.Repo, Ref: headRef(p), Profile: agent.Read}
}

// about returns the memo of what a notice's thread is about.
func (d *digest) about(channel, ts string) intake.Memo[tasks.Thread] {
	return intake.Memo[tasks.Thread]{Memory: d.memory, Name: "slack/about/" + channel + "/" + ts, Log: d.log}
}

// threadOf returns what the first request in a notice's thread starts from: the notice's subject. It returns any other
// thread unchanged.
func (d *digest) threadOf(ctx context.Context, o origin, thread tasks.Thread) (tasks.Thread, error) {
	if thread.Latest != "" || o.ThreadTS == "" || d.memory == nil {
		return thread, nil
	}
	return d.about(o.Channel, o.ThreadTS).Load(ctx)
}

// digestThread is the thread of the notices with one key.
type digestThread struct {
	*digest
	channel string
	key     string       // see render.NoticeKey
	subject tasks.Thread // what requests in it start from
}

// threadState is the stored state of a digestThread.
type threadState struct {
	Root    string    `json:"root,omitempty"`   // ts of its first message; empty: not known
	Begun   time.Time `json:"begun,omitzero"`   // when a process first tried to post that message
	Notice  string    `json:"notice,omitempty"` // the notice that is to begin the thread; others wait for it
	Expires time.Time `json:"expires,omitzero"` // until then
}

const (
	// beginLimit is how long a notice may take to begin a thread: longer than one attempt lasts.
	beginLimit = time.Minute
	// beginPause is how long other notices wait before they look again.
	beginPause = 3 * time.Second
	// clockSkew is how far Slack's clock may differ from this machine's.
	clockSkew = 5 * time.Minute
)

// tell posts a notice, to the thread or as its first message.
func (t *digestThread) tell(ctx context.Context, n tasks.Notice) error {
	parts := t.console.Notice(n)
	o, err := t.root(ctx, parts[0].Mark)
	if err != nil || o.TS != "" && n.Quiet {
		return err
	}
	f := newFound()
	if o.TS != "" {
		f, err = t.find(ctx, o, n.Task)
		switch {
		case code(err) == threadGone:
			return errors.Join(t.forgetRoot(ctx, o.TS), err)
		case unreadable(err):
			t.log.Error(noHistoryScope, "run", n.Task.ID, "err", err)
		case err != nil:
			return err
		}
		if err := t.rememberRoot(ctx, o.TS); err != nil {
			return err
		}
	}
	body := strings.TrimSpace(n.Body)
	first, long := render.Beginning(parts, body, "the file in the thread")
	whole := file{parts[0].Mark, "The whole text:", body}
	if long {
		parts = []render.Part{first}
	}
	if o.TS == "" {
		if o.TS, err = t.postRoot(ctx, o, f, parts[0]); err == nil {
			err = t.rememberRoot(ctx, o.TS)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range parts {
		if err := t.put(ctx, o, f, p); err != nil {
			return err
		}
	}
	if !long {
		return nil
	}
	err = t.putFile(ctx, o, f, whole)
	if fileRefused(err) {
		t.log.Warn("post a notice's file", "run", n.Task.ID, "err", err)
		return nil
	}
	return err
}

// root returns where a notice goes. Its TS is empty if the notice is to begin the thread; other notices get an
// *tasks.ErrLater meanwhile.
func (t *digestThread) root(ctx context.Context, m render.Marker) (origin, error) {
	me, err := t.me.get(ctx)
	if err != nil {
		return origin{}, err
	}
	o, now, notice := origin{Team: me.team, Channel: t.channel}, t.now(), m.Task+"@"+m.Ending
	var st threadState
	err = t.change(ctx, func(s *threadState) {
		if s.Root == "" && (s.Notice == notice || !now.Before(s.Expires)) {
			if s.Begun.IsZero() {
				s.Begun = now
			}
			s.Notice, s.Expires = notice, now.Add(beginLimit)
		}
		st = *s
	})
	switch {
	case err != nil:
		return o, err
	case st.Root != "":
		o.TS = st.Root
		return o, nil
	case st.Notice != notice:
		return o, &tasks.ErrLater{At: now.Add(beginPause), Why: "another notice of " + t.key + " begins the thread"}
	}
	o.TS, err = t.findRoot(ctx, me, st.Begun) // Slack's answer may have been lost
	return o, err
}

// findRoot finds the thread's first message by its marker, among the channel's messages since a time, or returns "".
func (t *digestThread) findRoot(ctx context.Context, me who, since time.Time) (ts string, err error) {
	ask := slack.GetConversationHistoryParameters{
		ChannelID: t.channel, Oldest: fmt.Sprintf("%d.000000", since.Add(-clockSkew).Unix()), Limit: pageSize,
		IncludeAllMetadata: true,
	}
	for range maxPages {
		page, err := t.history(ctx, ask)
		if unreadable(err) {
			t.log.Error(noHistoryScope, "err", err)
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for _, m := range page.Messages {
			if m.BotID == me.bot && render.MarkerOf(m).Notice == t.key {
				return m.Timestamp, nil
			}
		}
		if ask.Cursor = page.ResponseMetaData.NextCursor; ask.Cursor == "" {
			break
		}
	}
	return "", nil
}

// postRoot posts the thread's first message and records it. The rest of a part that Slack refuses with blocks
// follows in plain text.
func (t *digestThread) postRoot(ctx context.Context, o origin, f found, p render.Part) (ts string, err error) {
	mark := p.Mark
	ts, err = t.post(ctx, o, mark, p.Message(render.MaxPreview)...)
	if malformed(err) {
		t.log.Warn("post in plain text", "run", mark.Task, "err", err)
		mark.Part += ".1"
		ts, err = t.post(ctx, o, mark, slack.MsgOptionText(p.Plain()[0], false))
	}
	f.parts[mark] = err == nil
	return ts, err
}

// rememberRoot records the thread's first message and what the thread is about. Each notice does, and so keeps both
// in memory.
func (t *digestThread) rememberRoot(ctx context.Context, ts string) error {
	err := t.about(t.channel, ts).Change(ctx, func(about *tasks.Thread) error {
		*about = t.subject
		return nil
	})
	if err != nil {
		return err
	}
	return t.change(ctx, func(s *threadState) { *s = threadState{Root: ts} })
}

// forgetRoot forgets a thread whose first message was deleted.
func (t *digestThread) forgetRoot(ctx context.Context, ts string) error {
	return t.change(ctx, func(s *threadState) {
		if s.Root == ts {
			*s = threadState{}
		}
	})
}

func (t *digestThread) change(ctx context.Context, change func(*threadState)) error {
	memo := intake.Memo[threadState]{Memory: t.memory, Name: "slack/notices/" + t.channel + "/" + t.key, Log: t.log}
	return memo.Change(ctx, func(s *threadState) error {
		change(s)
		return nil
	})
}
