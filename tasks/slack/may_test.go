package slack

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A person without access gets one ephemeral message, and nothing is started. A bot without access gets no message.
func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	users := []slackfake.User{
		{ID: "U0GUEST", Guest: true},
		{ID: "U0VISITOR", OneGuest: true},
		{ID: "U0STRANGER", TeamID: "T0OTHER"},
		{ID: "U0COUSIN", TeamID: "T0COUSIN", Org: "E0ORG"},
		{ID: "U0THEIRGUEST", TeamID: "T0OTHER", Guest: true},
	}
	const (
		guest, member = "I do not take requests from guests.", "I only take requests from members of this workspace."
		listed, their = "You are not on the list of people who can ask me.",
			"I do not take requests from members of your workspace."
		elsewhere = "I do not take requests in this channel."
	)
	all := []string{ann, "U0GUEST", "U0VISITOR", "U0STRANGER", "U0COUSIN", "U0THEIRGUEST"}
	for name, tc := range map[string]struct {
		access  Access
		org     string
		channel string
		want    [6]string
	}{
		"members":          {Access{}, "", general, [6]string{"", guest, guest, member, member, guest}},
		"of an enterprise": {Access{}, "E0ORG", general, [6]string{"", guest, guest, member, "", guest}},
		"people": {
			Access{People: []string{"U0GUEST", "U0STRANGER"}},
			"", general,
			[6]string{listed, "", listed, "", listed, listed},
		},
		"teams": {
			Access{Teams: []string{"T0OTHER"}}, "", general, [6]string{their, guest, guest, "", their, guest},
		},
		"other channels": {
			Access{Channels: []string{"C0OTHER"}, People: all},
			"", general,
			[6]string{elsewhere, elsewhere, elsewhere, elsewhere, elsewhere, elsewhere},
		},
		"a direct message": {
			Access{Channels: []string{"C0OTHER"}}, "", "D0ANN", [6]string{"", guest, guest, member, member, guest},
		},
		"a private channel": {
			Access{Channels: []string{"G0SECRET"}}, "", "G0SECRET", [6]string{"", guest, guest, member, member, guest},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{Access: tc.access}, rights.Policy{}, slackfake.Config{Users: users, Org: tc.org})
			n := 0
			for i, user := range all {
				f.say(user, tc.channel, "", at+"count")
				if tc.want[i] == "" {
					n++
				} else {
					equal(t, user, f.word(tc.channel, user, 1), tc.want[i]+" An operator can change that.")
				}
				equal(t, user+"'s tasks", len(f.tasks()), n)
			}
			f.say(all[0], tc.channel, "", at+"count") // known by now
			for i, user := range all[1:] {
				if told := len(f.Ephemeral(tc.channel, user)); told > 1 || told == 1 && tc.want[i+1] == "" {
					t.Errorf("%s got %d notices", user, told)
				}
			}
			if looks := len(f.Calls("users.info")); looks > len(all) {
				t.Errorf("%d looks at %d users", looks, len(all))
			}
			equal(t, "said in public", len(f.Calls("chat.postMessage")), 0)
		})
	}
}

// A refusal stays ephemeral, even if Slack refuses to post it.
func TestRefusalStaysQuiet(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{People: []string{bob}}}, rights.Policy{})
	f.Fail("chat.postEphemeral", slackfake.Failure{Times: -1, Error: "user_not_in_channel"})
	f.say(ann, general, "", at+"count")
	f.until("the attempt", func() bool { return len(f.Calls("chat.postEphemeral")) == 1 })
	equal(t, "said in public", len(f.Calls("chat.postMessage")), 0)
}

// Bots are accepted if they are listed, and otherwise never answered. errand ignores its own messages even if it is
// listed.
func TestBots(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{Bots: []string{"B0FRIEND", "B0ERRAND"}, Channels: []string{general}}},
		rights.Policy{})
	if _, err := f.Post(t.Context(), slackfake.Message{
		Channel: "C0OTHER", User: "U0FRIEND", BotID: "B0FRIEND", Text: at + "elsewhere",
	}); err != nil {
		t.Fatal(err)
	}
	for who, id := range map[string]string{"U0FRIEND": "B0FRIEND", "U0OTHER": "B0OTHER", bot: "B0ERRAND"} {
		_, err := f.Post(t.Context(), slackfake.Message{Channel: general, User: who, BotID: id, Text: at + id})
		if err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "tasks", f.prompts(), []string{"B0FRIEND"})
	equal(t, "told", len(f.Calls("chat.postEphemeral")), 0)
}

// What a webhook or a workflow posts has no user. It is accepted if its bot is listed, and answered without a mention.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{Bots: []string{"B0ALERTS"}}}, rights.Policy{})
	for _, id := range []string{"B0ALERTS", "B0OTHER"} {
		m := slackfake.Message{Channel: general, BotID: id, Text: at + id}
		ts, err := f.Mention(t.Context(), m)
		if err == nil {
			err = f.Redeliver(t.Context(), ts, slackfake.MessageEvent)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	task := f.one()
	equal(t, "task", []string{task.Prompt, task.Actor}, []string{"B0ALERTS", "B0ALERTS"})
	r := f.open(f.source, task)
	if err := r.Close(t.Context(), answered("Fine.")); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.posted(task) {
		if strings.Contains(m.Text+string(m.Blocks), "<@") {
			t.Errorf("posted %s", m.Blocks)
		}
	}
	equal(t, "told", len(f.Calls("chat.postEphemeral")), 0)
}

// The words of a webhook's message count when they are edited, and until it is deleted. Its answer to a question is shown
// without a mention. People who are no approvers do not control its task.
func TestWebhookChangesItsMind(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{Bots: []string{"B0ALERTS"}}}, rights.Policy{})
	say := func(thread, text string) (ts string) {
		t.Helper()
		ts, err := f.Mention(t.Context(), slackfake.Message{
			Channel: general, BotID: "B0ALERTS", ThreadTS: thread, Text: text,
		})
		if err != nil {
			t.Fatal(err)
		}
		return ts
	}
	gone := say("", "count")
	f.edit(gone, at+"count all")
	equal(t, "edited", f.one().Prompt, "count all")
	f.edit(gone, "")
	equal(t, "deleted", f.state(f.one().ID).Ending.Kind, tasks.Withdrawn)

	root := say("", "paint it")
	task, claim := f.begin()
	ts := f.ask(task, claim, colours())
	f.press(ann, ts, "answer/1")
	f.told(ann, policy.NotYours)
	say(root, "red")
	equal(t, "answer", f.heard(task, claim, colours()).Text, "red")
	posted := f.posted(task)
	if shown := string(posted[len(posted)-1].Blocks); strings.Contains(shown, "@B0ALERTS") || !strings.Contains(shown, "red") {
		t.Errorf("the question shows %s", shown)
	}
}

// While Slack does not return a user's profile, the user has no access: the event has to come again. Slack is not
// called each time.
func TestUnknownPerson(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	var mu sync.Mutex
	f := newFrontDoor(t, Config{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}, rights.Policy{})
	f.Fail("users.info", slackfake.Failure{Times: -1, Error: "internal_error"})
	ts, err := f.Mention(t.Context(), slackfake.Message{Channel: general, User: ann, Text: "count"})
	for range 2 {
		if err == nil {
			t.Error("the event was taken")
		}
		err = f.Redeliver(t.Context(), ts, slackfake.AppMention)
	}
	equal(t, "tasks", f.prompts(), []string(nil))
	equal(t, "looks", len(f.Calls("users.info")), 1)

	f.Heal("users.info")
	mu.Lock()
	now = now.Add(errorLife)
	mu.Unlock()
	if err := f.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil {
		t.Error(err)
	}
	equal(t, "tasks", f.prompts(), []string{"count"})

	// A profile is fetched again after a while, because people become guests.
	mu.Lock()
	now = now.Add(personLife)
	mu.Unlock()
	f.say(ann, general, "", at+"again")
	equal(t, "looks", len(f.Calls("users.info")), 3)
}

// A user whom Slack does not know has no access.
func TestInvisiblePerson(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.Fail("users.info", slackfake.Failure{Error: "user_not_visible"})
	f.say(ann, general, "", at+"count")
	f.word(general, ann, 1)
	equal(t, "tasks", f.prompts(), []string(nil))
}

// Each of many concurrent users is looked up once, and the cache stays within its size.
func TestPeopleAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	hold := make(chan struct{})
	w.Fail("users.info", slackfake.Failure{Times: 1, Hold: hold})
	var looking sync.WaitGroup
	for range 8 {
		looking.Go(func() {
			if _, err := w.source.client.people.get(t.Context(), ann); err != nil {
				t.Error(err)
			}
		})
	}
	w.until("the look", func() bool { return len(w.Calls("users.info")) == 1 })
	close(hold)
	looking.Wait()
	equal(t, "looks", len(w.Calls("users.info")), 1)
}
