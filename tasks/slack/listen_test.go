package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/rights"
)

func TestMentionBecomesATask(t *testing.T) {
	t.Parallel()
	channels := func(id string) (string, bool) { return "acme/api", id == general }
	f := newFrontDoor(t, Config{Channels: channels}, rights.Policy{})
	root := f.mention("please <@" + bot + ">, fix &lt;main&gt; &amp; see <https://x.org/a|the page>")
	reply, err := f.Mention(t.Context(), slackfake.Message{
		Channel: general, User: bob, Text: "and the tests", ThreadTS: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	other, err := f.Mention(t.Context(), slackfake.Message{Channel: "G0SECRET", User: bob, Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	id := func(ts, channel string) string { return strings.ReplaceAll(ts, ".", "") + "-slack-" + channel }
	task := func(ts, root, channel, user, prompt string, o origin) tasks.Task {
		return tasks.Task{
			ID: id(ts, strings.ToLower(channel)), Source: "slack", Kind: "mention",
			Thread: "slack/" + team + "/" + channel + "/" + root, Class: tasks.Interactive, Profile: agent.Write,
			Actor: user, Name: strings.ToLower(user), Channel: o.Channel, Prompt: prompt, Origin: o.json(),
		}
	}
	first := task(root, root, general, ann, "please fix <main> & see the page (https://x.org/a)",
		origin{Team: team, Channel: general, TS: root, ThreadTS: "", User: ann})
	second := task(reply, root, general, bob, "and the tests", origin{
		Team: team, Channel: general, TS: reply, ThreadTS: root, User: bob,
	})
	third := task(other, other, "G0SECRET", bob, "hello", origin{
		Team: team, Channel: "G0SECRET", TS: other, ThreadTS: "", User: bob,
	})
	first.Repo, second.Repo = "acme/api", "acme/api"
	equal(t, "tasks", f.tasks(), []tasks.Task{third, second, first})
	equal(t, "origin", string(second.Origin),
		`{"team":"T0ERRAND","channel":"C0GENERAL","ts":"`+reply+`","thread_ts":"`+root+`","user":"U0BOB"}`)
	f.until("the eyes", func() bool {
		return slices.Equal(f.Reactions(general, root), []string{"eyes"}) &&
			slices.Equal(f.Reactions("G0SECRET", other), []string{"eyes"})
	})
}

// One mention arrives as two events, and Slack may repeat each. It is one task, and gets one reaction.
func TestOneTaskForAMention(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	first := f.mention("once")
	second, err := f.Post(t.Context(), slackfake.Message{Channel: general, User: ann, Text: "<@" + bot + "> twice"})
	if err != nil {
		t.Fatal(err)
	}
	for _, ts := range []string{first, second} {
		for range 2 {
			for _, kind := range []string{slackfake.MessageEvent, slackfake.AppMention} {
				if err := f.Redeliver(t.Context(), ts, kind); err != nil {
					t.Error(err)
				}
			}
		}
	}
	equal(t, "tasks", f.prompts(), []string{"twice", "once"})
	f.mention("last")
	equal(t, "eyes", len(f.Calls("reactions.add")), 3)
}

// The same time in two channels is two messages.
func TestTasksDoNotCollide(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	ts := f.recently()
	for _, channel := range []string{general, "C0OTHER"} {
		f.send(map[string]any{
			"type": "app_mention", "user": ann, "channel": channel, "ts": ts,
			"text": "<@" + bot + "> " + channel,
		}, 200)
	}
	got := f.prompts()
	slices.Sort(got)
	equal(t, "tasks", got, []string{general, "C0OTHER"})
}

func TestRequestsThatAreNotSlacks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	mention := f.Envelope(map[string]any{
		"type": "app_mention", "user": ann, "channel": general, "ts": f.recently(), "text": "<@" + bot + "> x",
	})
	challenge := map[string]any{"type": "url_verification", "challenge": "abc<1>"}
	for name, tc := range map[string]struct {
		event  any
		opt    slackfake.SendOptions
		status int
		body   string
	}{
		"wrong signature": {mention, slackfake.SendOptions{WrongSignature: true}, 401, "Unauthorized\n"},
		"no signature":    {mention, slackfake.SendOptions{Unsigned: true}, 401, "Unauthorized\n"},
		"stale":           {mention, slackfake.SendOptions{Age: 301 * time.Second}, 401, "Unauthorized\n"},
		"of the future": {
			mention, slackfake.SendOptions{Age: -310 * time.Second}, 401, "Unauthorized\n",
		},
		"not JSON":      {nil, slackfake.SendOptions{Body: []byte("{")}, 400, "Bad Request\n"},
		"not an object": {nil, slackfake.SendOptions{Body: []byte("[]")}, 400, "Bad Request\n"},
		"too large": {
			nil, slackfake.SendOptions{Body: bytes.Repeat([]byte(" "), intake.MaxEvent+1)}, 413, "Request Entity Too Large\n",
		},
		"largest": {
			nil, slackfake.SendOptions{Body: append(bytes.Repeat([]byte(" "), intake.MaxEvent-2), "{}"...)}, 200, "",
		},
		"challenge":                    {challenge, slackfake.SendOptions{}, 200, "abc<1>"},
		"challenge, unsigned":          {challenge, slackfake.SendOptions{Unsigned: true}, 401, "Unauthorized\n"},
		"challenge, signed by another": {challenge, slackfake.SendOptions{WrongSignature: true}, 401, "Unauthorized\n"},
	} {
		resp, err := f.Send(t.Context(), tc.event, tc.opt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		equal(t, name, [2]any{resp.StatusCode, string(body)}, [2]any{tc.status, tc.body})
	}
	equal(t, "tasks", f.prompts(), []string(nil))

	resp, err := f.Send(t.Context(), mention, slackfake.SendOptions{Age: 290 * time.Second})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a little old: %v, %v", resp, err)
	}
	equal(t, "tasks", f.prompts(), []string{"x"})
}

// An event that is not for errand is answered with 200, so that Slack does not repeat it, and has no effect.
func TestDroppedEvents(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	at := "<@" + bot + "> "
	event := func(fields ...any) map[string]any {
		e := map[string]any{
			"type": "message", "user": ann, "channel": general, "ts": f.recently(), "text": at + "x",
		}
		for i := 0; i < len(fields); i += 2 {
			name, _ := fields[i].(string)
			e[name] = fields[i+1]
		}
		return e
	}
	for name, e := range map[string]any{
		"our own":             event("user", bot),
		"a bot's":             event("bot_id", "B0OTHER"),
		"a bot's app_mention": event("type", "app_mention", "bot_id", "B0OTHER"),
		"changed":             event("subtype", "message_changed"),
		"joined":              event("subtype", "channel_join"),
		"deleted":             event("subtype", "message_deleted"),
		"edited": event("type", "app_mention", "edited",
			map[string]any{"user": ann, "ts": "1700000001.000000"}),
		"nobody's":        event("user", ""),
		"without mention": event("text", "x"),
		"someone else":    event("text", "<@U0OTHER> x"),
		"a longer ID":     event("text", "<@"+bot+"S> x"),
		"in code":         event("type", "app_mention", "text", "say `"+at+"x`"),
		"in a block":      event("type", "app_mention", "text", "say ```\n"+at+"x\n```"),
		"in a quote":      event("type", "app_mention", "text", "&gt; "+at+"x\nindeed"),
		"another event": map[string]any{
			"type": "reaction_added", "user": ann, "item": map[string]any{"ts": "1700000000.000100"},
		},
		"an odd event":  map[string]any{"type": "novelty", "user": map[string]any{"odd": 1}},
		"not an object": "message",
		"odd text":      event("text", 7),
		"odd channel":   event("channel", "general/x"),
		"odd user":      event("user", "ann"),
		"odd ts":        event("ts", "1700000000.1"),
		"odd thread":    event("thread_ts", "x"),
	} {
		t.Log(name)
		f.send(e, 200)
	}
	resp, err := f.Send(t.Context(), map[string]any{
		"type": "app_rate_limited", "team_id": team, "event": event("type", "app_mention"),
	}, slackfake.SendOptions{})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("not an event: %v, %v", resp, err)
	}
	equal(t, "tasks", f.prompts(), []string(nil))
	equal(t, "calls", len(f.Calls("")), 1) // auth.test, once
	equal(t, "log", f.log.String(), "")

	for _, e := range []map[string]any{event("text", 7), event("channel", "general/x"), event("thread_ts", "x")} {
		body, err := json.Marshal(f.Envelope(e))
		if err == nil {
			err = f.source.listener.interpreter.interpret(t.Context(), intake.Event{Body: body})
		}
		if !errors.Is(err, intake.ErrUnreadable) {
			t.Errorf("%v: %v", e, err)
		}
	}

	f.send(event("edited", nil), 200)
	equal(t, "tasks", f.prompts(), []string{"x"})
}

// What an old app verifies requests by is not stored, however it is written.
func TestTokenIsNotStored(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"token":"Z1","type":"x"}`:             `{"token":"","type":"x"}`,
		`{ "token" : "\u005a\"1", "type":"x" }`: `{ "token" : "", "type":"x" }`,
		`{"token":"","type":"x"}`:               `{"token":"","type":"x"}`,
		`{"token":7,"event":{"text":"7"}}`:      `{"token":7,"event":{"text":"7"}}`,
		`{"type":"x"}`:                          `{"type":"x"}`,
	} {
		var e envelope
		if err := e.read([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		equal(t, body, string(e.withoutToken()), want)
	}
}

// Until Slack has named the bot's user, messages wait that may be for errand. Slack is not asked for every event.
func TestUnknownIdentity(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	clock := make(chan time.Time, 1) // holds the time
	clock <- now
	f := newFrontDoor(t, Config{Now: func() time.Time { n := <-clock; clock <- n; return n }}, rights.Policy{})
	f.Fail("auth.test", slackfake.Failure{Error: "internal_error"})
	mention := map[string]any{
		"type": "app_mention", "user": ann, "channel": general, "ts": "1700000000.000200", "text": "<@" + bot + "> x",
	}
	for range 2 {
		f.send(mention, http.StatusServiceUnavailable)
	}
	equal(t, "asked", len(f.Calls("auth.test")), 1)
	<-clock
	clock <- now.Add(errorLife)
	f.send(mention, http.StatusOK)
	equal(t, "tasks", f.prompts(), []string{"x"})
}

// A refusal is shown only to the person, once, and Slack gets a 200.
func TestRefusal(t *testing.T) {
	t.Parallel()
	policy := rights.Policy{Repository: func(string) (rights.Repository, bool) { return rights.Repository{}, false }}
	channels := func(id string) (string, bool) { return "acme/<!here>", true }
	f := newFrontDoor(t, Config{Channels: channels}, policy)
	root := f.seed(slackfake.Message{Text: "root"})
	ts, err := f.Mention(t.Context(), slackfake.Message{Channel: general, User: ann, Text: "fix it", ThreadTS: root})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Redeliver(t.Context(), ts, slackfake.MessageEvent); err != nil {
		t.Fatal(err)
	}
	const sentence = "Repository acme/&lt;\u200b!here&gt; is not one errand works on. An operator can add it under repositories: in errand.yaml."
	f.until("the sentence", func() bool { return len(f.Ephemeral(general, ann)) > 0 })
	equal(t, "thread", f.Ephemeral(general, ann)[0].ThreadTS, root)
	equal(t, "sentence", f.Ephemeral(general, ann)[0].Text, sentence)

	// In a direct message there is no app_mention.
	if _, err := f.Post(t.Context(), slackfake.Message{
		Channel: "D0ANN", User: ann, Text: "<@" + bot + "> fix it",
	}); err != nil {
		t.Fatal(err)
	}
	f.until("the direct sentence", func() bool { return len(f.Ephemeral("D0ANN", ann)) > 0 })

	f.Fail("chat.postEphemeral", slackfake.Failure{Error: "user_not_in_channel"})
	ts = f.mention("fix it")
	f.until("the sentence in the thread", func() bool { return len(f.Messages(general, ts)) == 2 })
	equal(t, "sentence in the thread", f.Messages(general, ts)[1].Text, sentence)
	equal(t, "sentences", len(f.Calls("chat.postEphemeral")), 3)
	equal(t, "tasks", f.prompts(), []string(nil))
	equal(t, "eyes", len(f.Calls("reactions.add")), 0)
}

// An event that is not stored is answered with an error, so that Slack sends it again; the repetition is not dropped as
// a duplicate.
func TestUnstoredEvent(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.inbox.Refuse(errors.New("Redis does not answer"))
	ts, err := f.Mention(t.Context(), slackfake.Message{Channel: general, User: ann, Text: "patience"})
	if err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("answered %v", err)
	}
	f.inbox.Refuse(nil)
	if err := f.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil { // with X-Slack-Retry-Num
		t.Error(err)
	}
	equal(t, "tasks", f.prompts(), []string{"patience"})
	equal(t, "eyes", f.Reactions(general, ts), []string{eyes})
}

// Calls beyond Slack's tier are not sent.
func TestSignsArePaced(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := newFrontDoor(t, Config{Now: func() time.Time { return now }}, rights.Policy{})
	put := func(n, want int) {
		t.Helper()
		for range n {
			f.source.client.react(t.Context(), origin{Channel: general, TS: "1700000000.000001"}, eyes)
		}
		equal(t, "signs", len(f.Calls("reactions.add")), want)
	}
	put(reactBurst+5, reactBurst)
	now = now.Add(reactEvery)
	put(2, reactBurst+1)
}

// A call may take at most 10 s.
func TestEveryCallIsBounded(t *testing.T) {
	t.Parallel()
	late := errors.New("no deadline within 10 s")
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if at, ok := r.Context().Deadline(); !ok || time.Until(at) > 10*time.Second {
			return nil, late
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	w := newWorkspace(t, Config{HTTP: client, Interval: time.Millisecond})
	task := w.task(w.seed(slackfake.Message{Text: "root"}))
	ctx := context.WithoutCancel(t.Context())
	if _, err := w.source.Brief(ctx, task, ""); err != nil {
		t.Error(err)
	}
	w.source.client.react(ctx, mustOrigin(t, task), eyes)
	w.Fail("chat.postEphemeral", slackfake.Failure{Error: "user_not_in_channel"})
	w.source.client.notify(ctx, mustOrigin(t, task), "no")
	r, err := w.source.Open(ctx, task)
	if err != nil {
		t.Fatal(err)
	}
	r.Update(agent.Event{Kind: agent.Started})
	w.until("the edit", func() bool { return len(w.Calls("chat.update")) > 0 })
	if err := r.Close(ctx, answered("yes")); err != nil {
		t.Error(err)
	}
	if said := w.log.String(); said != "" {
		t.Errorf("log: %s", said)
	}
	for _, method := range []string{
		"auth.test", "conversations.replies", "chat.postMessage", "chat.postEphemeral", "chat.update", "reactions.add",
		"reactions.remove",
	} {
		if len(w.Calls(method)) == 0 {
			t.Errorf("%s was not called", method)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func mustOrigin(t *testing.T, task tasks.Task) origin {
	t.Helper()
	o, err := originOf(task)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
