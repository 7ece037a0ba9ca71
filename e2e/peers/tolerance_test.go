package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// suffix is what people may write: characters of four bytes, and from right to left. Characters that nobody sees, and
// that turn the direction of others, are removed from prompts.
const suffix = " 🚀\u200d👩🏽 مرحبا \u202e"

// variant is how a service could send what it sends today in another way.
type variant struct {
	name string
	// same: a payload must be understood as before. Otherwise nothing may break.
	same bool
	// text is what the texts of people end with; "" if they are not changed.
	text   string
	change func(payload any) any
}

// variants returns all of them. They change the same things each time.
func variants() []variant {
	random := rand.New(rand.NewPCG(1, 2))
	people := func(change func(string) string) func(any) any {
		return each(func(key string, v any) any {
			text, ok := v.(string)
			if ok && slices.Contains([]string{"body", "text", "title", "description"}, key) {
				return change(text)
			}
			return v
		})
	}
	strings10 := func(change func(string) string) func(any) any {
		return each(func(_ string, v any) any {
			if text, ok := v.(string); ok {
				return change(text)
			}
			return v
		})
	}
	return []variant{
		{"as sent", true, "", func(v any) any { return v }},
		{"other fields", true, "", each(func(_ string, v any) any {
			if o, ok := v.(object); ok {
				o["errand_future"] = object{"list": []any{1.0, nil, "x"}}
			}
			return v
		})},
		{"other order", true, "", func(v any) any { return reversed{v} }},
		{"emoji and right to left", true, " مرحبا", people(func(s string) string { return s + suffix })},
		{"longer texts", true, " more", people(func(s string) string {
			return s + strings.Repeat(" more", 2*len(s)+100)
		})},
		{"emoji everywhere", false, "", strings10(func(s string) string { return s + suffix })},
		{"ten times longer everywhere", false, "", strings10(func(s string) string { return strings.Repeat(s, 10) })},
		{"null here and there", false, "", each(func(_ string, v any) any {
			if random.IntN(20) == 0 {
				return nil
			}
			return v
		})},
		{"new values of enumerations", false, "", each(func(key string, v any) any {
			if _, ok := v.(string); ok && slices.Contains(enumerations, key) {
				return "errand_future"
			}
			return v
		})},
		{"other types here and there", false, "", each(func(_ string, v any) any {
			if random.IntN(20) == 0 {
				return []any{"text", 4711.0, true, object{}, []any{}}[random.IntN(5)]
			}
			return v
		})},
	}
}

var enumerations = []string{
	"action", "state", "status", "conclusion", "type", "subtype", "author_association", "visibility", "side",
	"channel_type", "active_lock_reason",
}

// each returns a function that changes every value within one, from the inside.
func each(change func(key string, v any) any) func(any) any {
	var walk func(key string, v any) any
	walk = func(key string, v any) any {
		switch v := v.(type) {
		case object:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				v[name] = walk(name, v[name])
			}
		case []any:
			for i := range v {
				v[i] = walk(key, v[i])
			}
		}
		return change(key, v)
	}
	return func(v any) any { return walk("", v) }
}

// reversed is a value whose keys are written from z to a.
type reversed struct{ value any }

func (r reversed) MarshalJSON() ([]byte, error) {
	o, ok := r.value.(object)
	if !ok {
		if list, ok := r.value.([]any); ok {
			all := []any{}
			for _, one := range list {
				all = append(all, reversed{one})
			}
			return json.Marshal(all)
		}
		return json.Marshal(r.value)
	}
	var out bytes.Buffer
	for i, name := range slices.Backward(slices.Sorted(maps.Keys(o))) {
		key, _ := json.Marshal(name)
		value, err := json.Marshal(reversed{o[name]})
		if err != nil {
			return nil, err
		}
		out.WriteString(map[bool]string{true: "{", false: ","}[i == len(o)-1] + string(key) + ":" + string(value))
	}
	if len(o) == 0 {
		out.WriteString("{")
	}
	out.WriteString("}")
	return out.Bytes(), nil
}

// recorder keeps the bodies that a fake delivers, with the names of their events.
type recorder struct {
	*httptest.Server

	mu     sync.Mutex
	bodies []recorded
}

type recorded struct {
	event string
	body  []byte
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, recorded{req.Header.Get("X-GitHub-Event"), body})
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) all() []recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bodies)
}

// door starts a separate front door.
func door(t *testing.T, env ...string) string {
	t.Helper()
	return run(t, append(env, "ERRAND_STATE_DIR="+t.TempDir(), "ERRAND_HTTP_ADDR=127.0.0.1:0",
		"ERRAND_CONSOLE_TOKEN="+console, "REDIS_URL="+redistest.Start(t)),
		"errand listens at", filepath.Join(root, "bin", "enqueue"), "serve")
}

// tolerate delivers every payload in every variant to a front door, and compares what becomes of it.
func tolerate(t *testing.T, payloads []recorded, open func(t *testing.T) string,
	deliver func(t *testing.T, base, id string, r recorded) (status int, said string),
) {
	t.Helper()
	type result struct{ answers, tasks []string }
	results := map[string]result{}
	for _, v := range variants() {
		base := open(t)
		var got result
		for i, p := range payloads {
			var payload any
			if err := json.Unmarshal(p.body, &payload); err != nil {
				t.Fatal(err)
			}
			changed, err := json.Marshal(v.change(payload))
			if err != nil {
				t.Fatal(err)
			}
			status, said := deliver(t, base, fmt.Sprint("delivery-", i), recorded{p.event, changed})
			if status >= http.StatusInternalServerError {
				t.Errorf("%s: %s %d was answered with %d %s: %.300s", v.name, p.event, i, status, said, changed)
			}
			got.answers = append(got.answers, fmt.Sprintf("%s %d: %d %s", p.event, i, status, said))
		}
		got.tasks = listTasks(t, base)
		results[v.name] = got
		if !v.same {
			continue
		}
		if diff := cmp.Diff(results["as sent"].answers, got.answers); diff != "" {
			t.Errorf("%s: other answers (-as sent +now):\n%s", v.name, diff)
		}
		withText := 0
		for i, one := range got.tasks {
			if len(results["as sent"].tasks) != len(got.tasks) {
				t.Errorf("%s: %d tasks, %d as sent", v.name, len(got.tasks), len(results["as sent"].tasks))
				break
			}
			was, _, _ := strings.Cut(results["as sent"].tasks[i], `: "`)
			is, prompt, _ := strings.Cut(one, `: "`)
			if was != is {
				t.Errorf("%s: %s\nas sent: %s", v.name, is, was)
			}
			if text := fmt.Sprintf("%q", v.text); strings.Contains(prompt, strings.Trim(text, `"`)) {
				withText++
			}
		}
		if withText == 0 && v.text != "" {
			t.Errorf("%s: no task has the text: %q", v.name, got.tasks)
		}
	}
	if len(results["as sent"].tasks) == 0 {
		t.Error("nothing became a task")
	}
}

// hubPayloads returns webhooks of the fake about a pull request and remarks on it.
func hubPayloads(t *testing.T) (*githubfake.Server, []recorded) {
	t.Helper()
	r := newRecorder(t)
	hub, err := githubfake.New(githubfake.Config{WebhookSecret: "github-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	if _, err := hub.CreateRepo("acme", "api", map[string]string{"README.md": "api\n"}); err != nil {
		t.Fatal(err)
	}
	hub.Deliver(r.URL)
	ctx := limited(t)
	n, err := hub.OpenPR(ctx, githubfake.PR{
		Repo: "acme/api", Title: "A change", Body: "Why.", User: "ann", Head: "change",
		Files: map[string]string{"README.md": "better\n"},
	})
	if err == nil {
		hub.SetPermission("acme/api", "ann", "write")
		_, err = hub.Comment(ctx, "acme/api", n, "ann", "@errand why is this so?")
	}
	if err == nil {
		_, err = hub.Review(ctx, "acme/api", n, "ann", "COMMENT", "",
			githubfake.Line{Path: "README.md", Line: 1, Body: "@errand explain this line"})
	}
	if err == nil {
		err = hub.Wait(ctx, (*githubfake.Server).Settled)
	}
	if err != nil {
		t.Fatal(err)
	}
	return hub, r.all()
}

// The front door understands webhooks of GitHub that say more, in another order, in other languages and at greater
// length, and survives those that say something else.
func TestToleranceOfGitHub(t *testing.T) {
	t.Parallel()
	hub, payloads := hubPayloads(t)
	var examples []struct {
		Name     string
		Examples []json.RawMessage
	}
	readJSON(t, &examples, "@octokit", "webhooks-examples", "api.github.com", "index.json")
	for _, e := range examples {
		for _, one := range e.Examples {
			payloads = append(payloads, recorded{e.Name, one})
		}
	}
	open := func(t *testing.T) string {
		t.Helper()
		return door(t, "GITHUB_API_URL="+hub.APIURL(), "GITHUB_URL="+hub.URL(), "GITHUB_TOKEN=ghp_test",
			"GITHUB_WEBHOOK_SECRET=github-secret")
	}
	tolerate(t, payloads, open, func(t *testing.T, base, id string, r recorded) (int, string) {
		t.Helper()
		resp, err := hub.Send(limited(t), r.event, nil,
			githubfake.SendOptions{Body: r.body, To: base + "/github/webhook", GUID: id})
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, became(t, base, id, strings.TrimSpace(string(said)))
	})
}

// The same for Slack's events.
func TestToleranceOfSlack(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	slack := slackfake.New(slackfake.Config{})
	t.Cleanup(slack.Close)
	slack.Deliver(r.URL)
	ctx := limited(t)
	ts, err := slack.Mention(ctx, slackfake.Message{
		Channel: "C0GENERAL", User: "U0ANN", Text: "what does this repository do?",
	})
	if err == nil {
		_, err = slack.Post(ctx, slackfake.Message{
			Channel: "C0GENERAL", User: "U0BOB", Text: "and for whom?", ThreadTS: ts,
		})
	}
	if err == nil {
		_, err = slack.Post(ctx, slackfake.Message{Channel: "D0ANN", User: "U0ANN", Text: "a direct question"})
	}
	if err == nil {
		err = slack.Edit(ctx, "C0GENERAL", ts, "<@U0ERRAND> what does this repository do today?")
	}
	if err == nil {
		err = slack.React(ctx, "U0ANN", "C0GENERAL", ts, "eyes")
	}
	if err != nil {
		t.Fatal(err)
	}
	open := func(t *testing.T) string {
		t.Helper()
		base := door(t, "SLACK_API_URL="+slack.APIURL(), "SLACK_BOT_TOKEN=xoxb-test",
			"SLACK_SIGNING_SECRET=slack-secret")
		slack.Deliver(base + "/slack/events")
		return base
	}
	tolerate(t, r.all(), open, func(t *testing.T, base, _ string, r recorded) (int, string) {
		t.Helper()
		resp, err := slack.Send(limited(t), nil, slackfake.SendOptions{Body: r.body})
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		settle(t, base)
		return resp.StatusCode, strings.TrimSpace(string(said))
	})
}
