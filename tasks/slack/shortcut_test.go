package slack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// shortcut chooses the shortcut of a message as a user.
func (f *frontDoor) shortcut(user, channel, ts string) {
	f.Helper()
	if err := f.Shortcut(f.Context(), user, channel, ts, render.ActionAsk); err != nil {
		f.Error(err)
	}
	f.settle()
}

// submit submits the only dialog of a user.
func (f *frontDoor) submit(user, text string) {
	f.Helper()
	views := f.Views(user)
	if len(views) != 1 {
		f.Fatalf("%d dialogs\nlog:\n%s", len(views), f.log)
	}
	if err := f.Submit(f.Context(), views[0], map[string]string{render.ReasonField: text}); err != nil {
		f.Error(err)
	}
	f.settle()
}

// The shortcut of a message starts a task in its thread, which the agent reads as if the bot had been mentioned there.
func TestShortcut(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{AppToken: "xapp-test"}, rights.Policy{})
	f.bySocket()
	root := f.seed(slackfake.Message{User: bob, Text: "the build is broken"})
	reply := f.seed(slackfake.Message{User: carol, Text: "since &lt;noon&gt;", ThreadTS: root})
	f.shortcut(ann, general, reply)
	f.submit(ann, " [repo=acme/api] why, @here? ")
	task := f.one()
	equal(t, "task", []string{task.Repo, task.Prompt, task.Actor}, []string{"acme/api", "why, @here?", ann})
	thread := f.Messages(general, root)
	equal(t, "post", thread[2].Text, "<@U0ANN> asks: [repo=acme/api] why, @\u200bhere?")
	equal(t, "signs", f.Reactions(general, thread[2].TS), []string{eyes})
	o := mustOrigin(t, task)
	equal(t, "origin", []string{o.TS, o.ThreadTS, o.About}, []string{thread[2].TS, root, reply})
	brief := f.briefed(task)
	for _, want := range []string{"@U0BOB, ", "the build is broken", "@U0CAROL, ", "since <noon>"} {
		if !strings.Contains(brief.System, want) {
			t.Errorf("the agent does not read %q:\n%s", want, brief.System)
		}
	}
	lines := strings.Split(brief.Prompt.Text, "\n")
	equal(t, "its prompt", slices.Delete(lines, 4, 5),
		[]string{"why, @here?", "", strings.TrimSpace(aboutIntro), "", "```", "since <noon>", "```"})

	f.begin()
	f.shortcut(bob, general, root)
	f.submit(bob, "and who?")
	equal(t, "the next one", []string{f.tasks()[0].Thread, f.tasks()[0].Repo, f.tasks()[0].Actor},
		[]string{task.Thread, "acme/api", bob})
}

// People who may not ask get the refusal of a mention and no dialog, and a mistake starts nothing.
func TestShortcutRefused(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{}, slackfake.Config{
		Users: []slackfake.User{{ID: bob, Guest: true}}, Channels: []slackfake.Channel{{ID: "G0SECRET", Outside: true}},
	})
	const guests = "I do not take requests from guests. An operator can change that."
	root := f.seed(slackfake.Message{User: carol, Text: "the build is broken"})
	secret := f.seed(slackfake.Message{Channel: "G0SECRET", User: carol, Text: "so is ours"})
	f.shortcut(bob, general, root)
	f.told(bob, guests)
	f.shortcut(bob, "G0SECRET", secret)
	equal(t, "the word", f.word("G0SECRET", bob, 1), guests)
	equal(t, "dialogs", len(f.Views(bob)), 0)

	f.shortcut(ann, general, root)
	f.submit(ann, "[speed=3] why?")
	f.told(ann, "There is no option \"speed\". The options are "+optionNames+".\nYou said: [speed=3] why?")
	f.shortcut(ann, "G0SECRET", secret)
	f.submit(ann, "why?")
	equal(t, "the word", f.word("G0SECRET", ann, 1), cannotPost+"\nYou said: why?")
	f.shortcut(ann, general, root)
	f.submit(ann, " ")
	equal(t, "started", []any{len(f.tasks()), len(f.Messages(general, root))}, []any{0, 1})

	if err := f.Shortcut(t.Context(), ann, general, root, "of another app"); err != nil {
		t.Error(err)
	}
	equal(t, "dialogs", len(f.Calls("views.open")), 3)
}

// The message is quoted however old it is, and also if it consists of blocks.
func TestShortcutQuotes(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	blocks := json.RawMessage("[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"disk ``` full\"}}]")
	root := f.seed(slackfake.Message{User: "U0CI", BotID: "B0CI", Blocks: blocks})
	for i := range maxMessages {
		f.seed(slackfake.Message{User: bob, Text: fmt.Sprint("me too ", i), ThreadTS: root})
	}
	f.shortcut(ann, general, root)
	f.submit(ann, "why?")
	b := f.briefed(f.one())
	equal(t, "in the thread", strings.Contains(b.System, "disk"), false)
	if text := b.Prompt.Text; !strings.HasPrefix(text, "why?\n\n"+aboutIntro+"@U0CI (a bot), ") ||
		!strings.HasSuffix(text, ":\n````\ndisk ``` full\n````") {
		t.Errorf("prompt: %s", text)
	}
	f.Fail("conversations.replies", slackfake.Failure{Error: "internal_error"})
	equal(t, "unread", f.briefed(f.one()).Prompt.Text, "why?\n\nThe request is about a message that could not be read.")
}

// A command in the dialog is carried out in the thread and not posted.
func TestShortcutObeys(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, _ := f.running("count")
	root := mustOrigin(t, task).root()
	for text, want := range map[string]string{
		"mark as ready": noDraft + "\nYou said: mark as ready", "status": "“Count” has been running for ",
		" Stop. ": intake.Stopping,
	} {
		f.shortcut(ann, general, root)
		f.submit(ann, text)
		said := f.Ephemeral(general, ann)
		if got := said[len(said)-1].Text; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	equal(t, "tasks and posts", []any{len(f.tasks()), len(f.Messages(general, root))}, []any{1, 1})
	equal(t, "stopped", f.state(task.ID).Stopping(), true)
}
