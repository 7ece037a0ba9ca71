package slack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// command gives a slash command as a user.
func (f *frontDoor) command(user, channel, text string) {
	f.Helper()
	if err := f.Command(f.Context(), user, channel, "/errand", text); err != nil {
		f.Error(err)
	}
	f.settle()
}

// bySocket makes Slack send everything that people do through Socket Mode.
func (f *frontDoor) bySocket() {
	f.Helper()
	f.Deliver("")
	f.Interactivity("")
	f.Commands("")
	f.until("the connection", func() bool { return f.Sockets() == 1 })
	f.greeted()
}

// A slash command starts a task in the thread of a post that shows it, as a mention would: follow-ups and the answer go
// there.
func TestSlashCommand(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Redact: strings.NewReplacer("hunter2", "[redacted]").Replace}, rights.Policy{})
	f.command(ann, general, "[repo=acme/api] why is a &lt; b, <@U0BOB|bob>? @here hunter2")
	task := f.one()
	equal(t, "task", []string{task.Repo, task.Prompt, task.Actor, task.Name},
		[]string{"acme/api", "why is a < b, @U0BOB? @here hunter2", ann, "u0ann"})
	posted := f.Messages(general, "")
	equal(t, "post", posted[0].Text,
		"<@U0ANN> asks: [repo=acme/api] why is a &lt; b, @U0BOB? @\u200bhere [redacted]")
	equal(t, "its thread", mustOrigin(t, task).root(), posted[0].TS)
	equal(t, "signs", f.Reactions(general, posted[0].TS), []string{eyes})

	f.begin()
	f.say(ann, general, posted[0].TS, "and faster")
	equal(t, "the follow-up", []string{f.tasks()[0].Prompt, f.tasks()[0].Thread},
		[]string{"and faster", task.Thread})
	equal(t, "what the agent reads", strings.Contains(f.briefed(f.tasks()[0]).System,
		"@U0ERRAND (you, a request of the person it names)"), true)
}

// Commands that start nothing are answered to the person only, also where the bot cannot post.
func TestSlashCommandAnswers(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{},
		slackfake.Config{Channels: []slackfake.Channel{{ID: "G0SECRET", Outside: true}}})
	n := 0
	told := func(channel, text, want string) {
		t.Helper()
		n++
		f.command(ann, channel, text)
		said := f.Ephemeral(channel, ann)
		equal(t, text, said[len(said)-1].Text, want)
	}
	told(general, "", help)
	told("G0SECRET", " Help! ", help)
	told(general, "status", "You have no recent tasks in Slack.")
	told(general, "stop", inThread)
	told("G0SECRET", "count", cannotPost+"\nYou said: count")
	told(general, "[speed=3] count", "There is no option \"speed\". The options are "+
		optionNames+".\nYou said: [speed=3] count")
	told(general, "Mark it as ready!", inThread)
	equal(t, "started", []any{len(f.tasks()), len(f.Messages(general, ""))}, []any{0, 0})

	f.command(bob, general, "sing")
	first, claim := f.running("count")
	f.end(first, claim, answered("Forty-two."))
	told(general, "status", intake.Describe(f.state(first.ID), time.Now()))
	equal(t, "answers", len(f.Ephemeral(general, ann)), n-2)
	f.running("count again")
	f.command(ann, general, "status")
	if said := f.word(general, ann, n-1); !strings.HasPrefix(said, "“Count again” has been running for ") ||
		strings.Contains(said, "\n") {
		t.Errorf("status: %s", said)
	}
}

// Who may not mention the bot may not ask by a command either.
func TestWhoMayCommand(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{Channels: []string{general}}, LinkURL: "https://errand.example/link"},
		rights.Policy{}, slackfake.Config{Users: []slackfake.User{{ID: bob, Guest: true}}})
	f.command(bob, general, "count")
	f.told(bob, "I do not take requests from guests. An operator can change that.\nYou said: count")
	f.command(bob, general, "link")
	f.told(bob, "I do not take requests from guests. An operator can change that.")
	f.command(ann, "C0OTHER", "count")
	equal(t, "the word", f.word("C0OTHER", ann, 1),
		"I do not take requests in this channel. An operator can change that.\nYou said: count")
	equal(t, "posts", len(f.Calls("chat.postMessage")), 0)
	f.command(ann, "D0ANN", "count")
	equal(t, "in a direct message", f.one().Prompt, "count")
}

// Where people can link their account, the help says how.
func TestHelpNamesLinks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{LinkURL: "https://errand.example/link"}, rights.Policy{})
	f.command(ann, general, "help")
	f.told(ann, help+linkHelp)
}

// If the repository is chosen from a menu, the task is the same.
func TestSlashCommandPicks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	f.command(ann, general, "mend it")
	f.choose(ann, f.offered(), "acme/web")
	equal(t, "task", []string{f.one().Repo, f.one().Prompt, mustOrigin(t, f.one()).TS},
		[]string{"acme/web", "mend it", f.Messages(general, "")[0].TS})
}

func TestSlashCommandsAreSlacks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	form := url.Values{
		"command": {"/errand"}, "team_id": {team}, "channel_id": {general}, "user_id": {ann}, "text": {"count"},
	}
	resp, err := http.PostForm(f.door+"/slack/commands", form)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	equal(t, "unsigned", resp.StatusCode, http.StatusUnauthorized)
	release := occupy(f.source.listener)
	if err := f.Command(t.Context(), ann, general, "/errand", "count"); err == nil {
		t.Error("taken beyond the limit")
	}
	release()
	equal(t, "tasks", len(f.tasks()), 0)
}

// moody makes Redis fail for so many calls.
type moody struct{ fails atomic.Int32 }

func (m *moody) fail() error {
	if m.fails.Add(-1) >= 0 {
		return errors.New("no Redis")
	}
	return nil
}

func (m *moody) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *moody) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := m.fail(); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (m *moody) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := m.fail(); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

// Slack gets its answer when the request is stored, though it is refused at first and errand is shutting down.
func TestSlashCommandLasts(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"HTTP": {}, "socket": {AppToken: "xapp-test"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, cfg, rights.Policy{}, slackfake.Config{AnswerWithin: time.Minute})
			if cfg.AppToken != "" {
				f.bySocket()
			}
			f.source.listener.limit = time.Minute
			hold := make(chan struct{})
			f.Fail("chat.postMessage", slackfake.Failure{Status: http.StatusTooManyRequests, Hold: hold})
			if cfg.AppToken == "" {
				f.stop() // by Socket Mode nothing could be answered afterwards
			}
			given := make(chan error, 1)
			go func() { given <- f.Command(t.Context(), ann, general, "/errand", "count") }()
			f.until("the post", func() bool { return len(f.Calls("chat.postMessage")) == 1 })
			close(hold)
			if err := <-given; err != nil {
				t.Error(err)
			}
			equal(t, "tasks and posts", []any{f.prompts(), len(f.Messages(general, ""))}, []any{[]string{"count"}, 1})
		})
	}
}

// A posted request starts when Redis is back. A post without a task is deleted, and the person gets their words.
func TestSlashCommandFails(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	opt, err := redis.ParseURL(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	client, hook := redis.NewClient(opt), &moody{}
	defer client.Close()
	client.AddHook(hook)
	st, err := store.New(store.Config{Redis: client})
	if err != nil {
		t.Fatal(err)
	}
	f.desk = desk.New(st, queue.New(st, client, time.Hour), rights.Policy{}, nil)
	f.source = f.process(Config{})
	f.listen(t.Context(), f.desk)
	hook.fails.Store(2)
	f.command(ann, general, "count")
	equal(t, "tasks and posts", []any{f.prompts(), len(f.Messages(general, "")), len(f.Ephemeral(general, ann))},
		[]any{[]string{"count"}, 1, 0})

	f.Fail("chat.delete", slackfake.Failure{Error: "cant_delete_message"})
	f.command(ann, general, "[speed=3] sing")
	equal(t, "refused", f.word(general, ann, 1), "There is no option \"speed\". The options are "+
		optionNames+".\nYou said: [speed=3] sing")
	f.said("remove request")
	f.Fail("chat.postMessage", slackfake.Failure{Error: "internal_error"})
	f.command(ann, general, "dance")
	equal(t, "failed", f.word(general, ann, 2), tryLater+"\nYou said: dance")
}
