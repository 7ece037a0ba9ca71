package slack

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// say posts a user's message in a thread, or at the top level if the thread is empty, with the events that Slack would
// send.
func (f *frontDoor) say(user, channel, thread, text string) (ts string) {
	f.Helper()
	m := slackfake.Message{Channel: channel, User: user, Text: text, ThreadTS: thread}
	ts, err := f.Post(f.Context(), m)
	if err == nil && strings.Contains(text, "<@"+bot+">") && !strings.HasPrefix(channel, "D") {
		err = f.Redeliver(f.Context(), ts, slackfake.AppMention)
	}
	if err != nil {
		f.Fatal(err)
	}
	return ts
}

// word waits for the n-th ephemeral message to a user in a channel.
func (f *frontDoor) word(channel, user string, n int) string {
	f.Helper()
	f.until("what is told", func() bool { return len(f.Ephemeral(channel, user)) >= n })
	return f.Ephemeral(channel, user)[n-1].Text
}

// one returns the only task.
func (f *frontDoor) one() tasks.Task {
	f.Helper()
	list := f.tasks()
	if len(list) != 1 {
		f.Fatalf("%d tasks: %+v", len(list), list)
	}
	return list[0]
}

const at = "<@" + bot + "> "

// A directory is one of the thread's repository and branch or pull request, so it stays as long as they do. One for
// which a message was refused is forgotten: the worker knows where the conversation began.
func TestWhichDirectory(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Pulls: somePulls, Repositories: []string{"acme/api", "acme/web"}}, rights.Policy{})
	last := func() [2]string { l := f.tasks()[0]; return [2]string{l.Repo, l.Options.Directory} }
	root := f.say(ann, general, "", at+"[repo=api directory=services/a] one")
	equal(t, "the message's", last(), [2]string{"acme/api", "services/a"})
	one, claim := f.begin()
	f.say(ann, general, root, at+"two")
	equal(t, "the thread's", last(), [2]string{"acme/api", "services/a"})
	equal(t, "of what the run may absorb", tasks.MergeKey(f.tasks()[0]), tasks.MergeKey(one))
	end := func(claim *store.Claim, e tasks.Ending) {
		f.finish(claim, e)
		if err := claim.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	run := func(e tasks.Ending) {
		_, claim := f.begin()
		end(claim, e)
	}
	end(claim, tasks.Ending{Kind: tasks.Failed})
	run(tasks.Ending{Kind: tasks.Failed})
	f.say(ann, general, root, at+"three")
	equal(t, "the thread's, without a session", last(), [2]string{"acme/api", "services/a"})
	run(tasks.Ending{Kind: tasks.Refused, Reason: "Your budget for today is used up."})
	f.say(ann, general, root, at+"again")
	equal(t, "the thread's, after a refusal for another reason", last(), [2]string{"acme/api", "services/a"})
	run(tasks.Ending{Kind: tasks.Answered})
	f.say(ann, general, root, at+"[directory=misspelt] four")
	equal(t, "another one", last(), [2]string{"acme/api", "misspelt"})
	run(tasks.Ending{Kind: tasks.Refused, Option: tasks.OptionDirectory})
	f.say(ann, general, root, at+"five")
	equal(t, "left to the worker", last(), [2]string{"acme/api", ""})
	run(tasks.Ending{Kind: tasks.Answered})
	f.say(ann, general, root, at+"[directory=services/a] six")
	f.say(ann, general, root, at+"[branch=dev] seven")
	equal(t, "another branch", last(), [2]string{"acme/api", ""})
	f.say(ann, general, root, at+"[directory=services/a] on it")
	f.say(ann, general, root, at+"[branch=dev] again")
	equal(t, "the same branch", last(), [2]string{"acme/api", "services/a"})
	f.say(ann, general, root, at+"fix PR 3")
	equal(t, "a pull request", last(), [2]string{"acme/api", ""})
	f.say(ann, general, root, at+"[directory=services/a] fix PR 3")
	equal(t, "the message's, of a pull request", last(), [2]string{"acme/api", "services/a"})
	f.say(ann, general, root, at+"review PR 3")
	equal(t, "the same pull request", last(), [2]string{"acme/api", "services/a"})
	f.say(ann, general, root, at+"[directory=services/a] eight")
	f.say(ann, general, root, at+"[repo=web] nine")
	equal(t, "another repository", last(), [2]string{"acme/web", ""})
	f.say(ann, general, "", at+"[repo=none directory=services/a] ten")
	f.lastWord(ann, 1, "The directory \"services/a\" needs a repository: name one.")
}

// The repository comes from the message, otherwise from its thread, otherwise from its channel.
func TestWhichRepository(t *testing.T) {
	t.Parallel()
	channels := func(id string) (string, bool) { return "acme/api", id == general }
	f := newFrontDoor(t, Config{Channels: channels, Repositories: []string{"acme/api", "acme/web"}}, rights.Policy{})
	last := func() [2]string { l := f.tasks()[0]; return [2]string{l.Repo, l.Ref} }

	root := f.say(ann, general, "", at+"one")
	equal(t, "the channel's", last(), [2]string{"acme/api", ""})
	anew := func() bool { return !f.briefed(f.tasks()[0]).Keep }
	f.say(ann, general, root, at+"[repo=web branch=dev] two")
	equal(t, "the message's", last(), [2]string{"acme/web", "dev"})
	equal(t, "a new clone", anew(), true)
	f.say(bob, general, root, at+"three")
	equal(t, "the thread's", last(), [2]string{"acme/web", "dev"})
	equal(t, "a new clone", anew(), false)
	f.say(bob, general, root, at+"[branch=other] three")
	equal(t, "another branch", last(), [2]string{"acme/web", "other"})
	equal(t, "a new clone", anew(), true)
	f.say(bob, general, root, at+"look at <https://github.com/Acme/API>")
	equal(t, "the address", last(), [2]string{"acme/api", ""})
	f.say(bob, general, root, at+"as in acme/api#1 and acme/web#2")
	equal(t, "several, in a thread", last(), [2]string{"acme/api", ""})
	f.say(ann, general, root, at+"[repo=none] what is a monad?")
	equal(t, "none", last(), [2]string{"", ""})
	f.say(ann, general, root, at+"and a functor?")
	equal(t, "none, as the thread", last(), [2]string{"", ""})
	f.say(ann, "C0OTHER", "", at+"elsewhere/else#3")
	equal(t, "the number", last(), [2]string{"elsewhere/else", ""})
}

// If none of them names a repository, the requester is asked, in an ephemeral message; errand does not guess.
func TestNoRepository(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Repositories: []string{"acme/api", "acme/web", "other/web"}}, rights.Policy{})
	f.say(ann, general, "", at+"fix it")
	equal(t, "question", f.word(general, ann, 1),
		"Which repository is this about? Ask again and begin with [repo=owner/name]: acme/api, acme/web, other/web. Use [repo=none] to work without a repository.")
	f.say(ann, general, "", at+"do in a/b#1 as in c/d#2")
	equal(t, "those named", strings.Contains(f.word(general, ann, 2), ": a/b, c/d."), true)
	f.say(ann, general, "", at+"[repo=web] fix it")
	equal(t, "ambiguous", f.word(general, ann, 3),
		`There are several repositories called "web": acme/web, other/web. Name one of them.`)
	f.say(ann, general, "", at+"[repo=cli] fix it")
	equal(t, "unknown", f.word(general, ann, 4), `I do not know a repository called "cli". Write it as owner/name.`)
	f.say(ann, general, "", at+"[repo=none branch=dev] fix it")
	equal(t, "a branch of nothing", f.word(general, ann, 5),
		"A branch needs a repository: write [repo=owner/name branch=dev].")
	f.say(ann, general, "", at+"[repo=acme/api size=large] fix it")
	equal(t, "unknown option", strings.HasPrefix(f.word(general, ann, 6), `There is no option "size".`), true)
	equal(t, "tasks", f.prompts(), []string(nil))
	equal(t, "told", len(f.Ephemeral(general, ann)), 6) // each once, although a mention is two events
}

func TestOnlyRepository(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Repositories: []string{"acme/api"}}, rights.Policy{})
	f.say(ann, general, "", at+"fix it")
	equal(t, "repository", f.one().Repo, "acme/api")
}

// The options of a message are checked against the policy, and apply to its thread as well, except the plan.
func TestOptions(t *testing.T) {
	t.Parallel()
	policy := rights.Policy{Limit: time.Hour, Budgets: rights.Budgets{Task: 5}}
	f := newFrontDoor(t, Config{}, policy)
	root := f.say(ann, general, "", at+"[repo=acme/api model=opus effort=high budget=100 timeout=3h plan] think")
	want := tasks.Options{Model: "opus", Effort: "high", MaxUSD: 5, Limit: time.Hour, Plan: true}
	equal(t, "options", f.tasks()[0].Options, want)
	equal(t, "prompt", f.prompts(), []string{"think"})

	f.say(bob, general, root, at+"do it")
	want.Plan = false
	equal(t, "the thread's", f.tasks()[0].Options, want)
	f.say(bob, general, root, at+"[model=haiku timeout=5m] do it")
	want.Model, want.Limit = "haiku", 5*time.Minute
	equal(t, "another's", f.tasks()[0].Options, want)
	f.say(ann, general, "", at+"[model=no!such] do it")
	equal(t, "refusal", f.word(general, ann, 1), `"no!such" is not the name of a model.`)
}
