package slack

import (
	"context"
	"sync"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

// accounts are what people may do on a forge, by login.
type accounts struct{ sync.Map }

func (*accounts) Name() string { return "github" }

func (*accounts) AccountID(context.Context, string, string) (int64, error) { return 0, nil }

func (a *accounts) Permission(_ context.Context, _, login string) (forge.Permission, error) {
	level, ok := a.Load(login)
	if !ok {
		return forge.PermissionNone, forge.ErrNotFound
	}
	return level.(forge.Permission), nil
}

func (*accounts) Private(context.Context, string) (bool, error) { return true, nil }

// An approver who may only read the repository approves nothing that a run does there, nor does its asker without
// access. Only people who may read it get its pull requests listed, in a channel that the operator permits.
func TestRightsInSlack(t *testing.T) {
	t.Parallel()
	hub := &accounts{}
	hub.Store("ann", forge.PermissionWrite)
	hub.Store("carol", forge.PermissionRead)
	policy := rights.Policy{
		People: people.People{{Name: "ann", Slack: ann, GitHub: "ann"}, {Name: "carol", Slack: carol, GitHub: "carol"}},
		Rights: &rights.ForgeRights{Forge: hub, Unmapped: policy.UnmappedRead, Lists: func(channel, repo string) bool {
			return repo == "acme/api"
		}},
	}
	channels := func(string) (string, bool) { return "acme/api", true }
	f := newFrontDoor(t, Config{
		Channels: channels, Approvers: []string{carol}, Pulls: somePulls,
		Repositories: []string{"acme/api", "acme/web"},
	}, policy)
	task, claim := f.running("deploy it")
	q := consent()
	q.Profile = agent.Write
	ts := f.ask(task, claim, q)
	const mayNot = "Only people who may write in acme/api can answer this."
	f.press(carol, ts, "answer/0")
	f.told(carol, mayNot)
	hub.Delete("ann")
	f.press(ann, ts, "answer/0")
	f.told(ann, "ann has no access to acme/api.")
	f.say(ann, general, originTS(task), "approve")
	f.told(ann, "ann has no access to acme/api.")
	hub.Store("ann", forge.PermissionWrite)
	f.press(ann, ts, "answer/0")
	equal(t, "answer", f.heard(task, claim, q).Text, tasks.Approve)

	for who, step := range map[string]struct{ text, want string }{
		bob: {
			"list PRs",
			"I do not know your account on GitHub, so I cannot see what you may do in acme/api. An operator can add you under people: in errand.yaml.",
		},
		ann: {
			"list PRs in web",
			"acme/web is private, and its answers may not be posted in this channel. Ask me in a direct message, or have an operator add the channel under channels: in errand.yaml.",
		},
	} {
		f.say(who, general, "", at+step.text)
		f.told(who, step.want)
	}
	ok := f.say(carol, general, "", at+"list PRs")
	if n := len(f.Messages(general, ok)); n != 2 {
		t.Errorf("a reader's list has %d messages", n)
	}
}

// originTS is the ts of the message that a task is from.
func originTS(t tasks.Task) string {
	o, _ := originOf(t)
	return o.TS
}
