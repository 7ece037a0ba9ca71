package slack

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// noticeboard is the place in a channel where the notices of one pull request stand.
type noticeboard struct {
	*Source
	channel string
	pull    forge.PullRequest
}

// stand is what is remembered of it.
type stand struct {
	Root  string    `json:"root,omitempty"` // ts of the message whose thread it is; empty: there is none that we know of
	Begun time.Time `json:"begun,omitzero"` // when somebody first set out to post that message
	Who   string    `json:"who,omitempty"`  // the notice that is to be it, while it may be under way: others wait for that
	Until time.Time `json:"until,omitzero"`
}

// How long a notice may be under way that begins a thread: longer than one attempt lasts. How soon another one looks again. And by how much
// Slack's clock may differ from ours.
const (
	beginLimit = time.Minute
	beginPause = 3 * time.Second
	clockSkew  = 5 * time.Minute
)

// take is where the notice with that mark goes. Its TS is empty if it is to begin the thread: no other one does meanwhile, which gets an
// *tasks.ErrLater.
func (b noticeboard) take(ctx context.Context, m marker) (origin, error) {
	me, err := b.me.get(ctx)
	if err != nil {
		return origin{}, fmt.Errorf("tell of %s: %w", key(b.pull), err)
	}
	o, now, who := origin{Team: me.team, Channel: b.channel}, b.cfg.Now(), m.task+"@"+m.ending
	var st stand
	err = b.change(ctx, func(s *stand) {
		if st = *s; st.Root != "" || st.Who != who && now.Before(st.Until) {
			return
		}
		if s.Begun.IsZero() {
			s.Begun = now
		}
		s.Who, s.Until = who, now.Add(beginLimit)
		st = *s
	})
	switch {
	case err != nil:
		return o, err
	case st.Root != "":
		o.TS = st.Root
		return o, nil
	case st.Who != who:
		return o, &tasks.ErrLater{At: now.Add(beginPause), Why: "another notice of " + key(b.pull) + " begins the thread"}
	}
	o.TS, err = b.posted(ctx, me, st.Begun) // the answer may have been lost
	return o, err
}

// posted finds the message that begins the thread, by its marker, among those since somebody set out to post it; empty where there is none.
func (b noticeboard) posted(ctx context.Context, me who, since time.Time) (ts string, err error) {
	ask := &slack.GetConversationHistoryParameters{
		ChannelID: b.channel, Oldest: fmt.Sprintf("%d.000000", since.Add(-clockSkew).Unix()), Limit: pageSize, IncludeAllMetadata: true,
	}
	for range maxPages {
		page, err := b.history(ctx, ask)
		if blind(err) {
			b.log.Error("post notice without looking for an earlier one: the app lacks the scope channels:history or groups:history", "err", err)
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for _, m := range page.Messages {
			if m.BotID == me.bot && markerOf(m).pull == key(b.pull) {
				return m.Timestamp, nil
			}
		}
		if ask.Cursor = page.ResponseMetaData.NextCursor; ask.Cursor == "" {
			break
		}
	}
	return "", nil
}

func (s *Source) history(ctx context.Context, ask *slack.GetConversationHistoryParameters) (*slack.GetConversationHistoryResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	page, err := s.api.GetConversationHistoryContext(ctx, ask)
	if err != nil {
		return nil, fmt.Errorf("read channel %s: %w", ask.ChannelID, err)
	}
	return page, nil
}

// settle notes which message begins the thread, and what it is about, for whoever asks for something there. Each notice does, and so keeps it
// in memory.
func (b noticeboard) settle(ctx context.Context, ts string) error {
	about := tasks.Thread{Repo: b.pull.Repo, Ref: headOf(b.pull), Profile: agent.Read}
	if b.pull.Fork {
		about.Profile = agent.Untrusted
	}
	err := b.aboutMemo(b.channel, ts).Change(ctx, func(t *tasks.Thread) error {
		*t = about
		return nil
	})
	if err != nil {
		return err
	}
	return b.change(ctx, func(s *stand) { *s = stand{Root: ts} })
}

// leave forgets a thread whose first message is gone.
func (b noticeboard) leave(ctx context.Context, ts string) error {
	return b.change(ctx, func(s *stand) {
		if s.Root == ts {
			*s = stand{}
		}
	})
}

func (b noticeboard) change(ctx context.Context, change func(*stand)) error {
	memo := intake.Memo[stand]{Memory: b.cfg.Memory, Name: "slack/notices/" + b.channel + "/" + key(b.pull), Log: b.cfg.Log}
	return memo.Change(ctx, func(s *stand) error {
		change(s)
		return nil
	})
}

// aboutMemo is what the thread of a notice is about.
func (s *Source) aboutMemo(channel, ts string) intake.Memo[tasks.Thread] {
	return intake.Memo[tasks.Thread]{Memory: s.cfg.Memory, Name: "slack/about/" + channel + "/" + ts, Log: s.cfg.Log}
}

// noticed returns what the first request in the thread of a notice is about: the notice's pull request. Any other thread stays as it is.
func (s *Source) noticed(ctx context.Context, o origin, thread tasks.Thread) (tasks.Thread, error) {
	if thread.Latest != "" || o.ThreadTS == "" || len(s.cfg.Results) == 0 {
		return thread, nil
	}
	return s.aboutMemo(o.Channel, o.ThreadTS).Load(ctx)
}
