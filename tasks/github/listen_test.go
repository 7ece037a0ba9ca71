package github

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

func TestPullRequestBecomesTask(t *testing.T) {
	both(t, func(w *world) {
		f := w.listen()
		n := w.open(func(pr *githubfake.PR) { pr.Title = "Say\u202e  hello <!-- and more -->" })
		pr, hook := w.pull(n), must2(w.hub.LastDelivery("pull_request"))
		if hook.Status != http.StatusAccepted {
			t.Errorf("answered with %d", hook.Status)
		}
		o := subject.Origin{
			Ref: thread.Ref{Repo: repo, Number: n}, Head: pr.HeadSHA, Base: "main", BaseSHA: pr.BaseSHA,
			Title: "Say hello <!-- and more -->", // which GitHub shows in a title
			Body:  "It is polite.", URL: w.hub.URL() + "/acme/api/pull/1", Action: "opened",
		}
		if w.src.forge.IsApp() {
			o.Installation = 5
		}
		want := tasks.Task{
			ID: tasks.NewID(pr.UpdatedAt, "github", hook.GUID), Source: "github", Kind: "review",
			Thread: "github/acme/api#1/review", Class: tasks.Review, Profile: agent.Read, Repo: repo, Ref: pr.HeadSHA,
			Actor: "octocat", Prompt: "Review pull request #1 of acme/api: " + o.Title, Origin: must(json.Marshal(o)),
		}
		got := f.tasks()
		if diff := cmp.Diff([]tasks.Task{want}, got, cmpopts.EquateEmpty()); diff != "" {
			w.Fatal(diff)
		}
		if !tasks.ValidID(got[0].ID) {
			w.Errorf("ID %s", got[0].ID)
		}

		// The same delivery again is the same task, and a push is another one, of the same thread, in its place.
		if err := w.hub.Redeliver(w.Context(), hook.GUID); err != nil || len(f.tasks()) != 1 {
			w.Errorf("redelivered: %v, %d tasks", err, len(f.tasks()))
		}
		head := must(w.hub.PushPR(w.Context(), repo, n, nil))
		all := f.tasks()
		if len(all) != 1 || all[0].Ref != head || all[0].Thread != got[0].Thread {
			w.Errorf("after a push: %+v", all)
		}
	})
}

func TestDraftIsReviewedWhenReady(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	n := w.open(func(pr *githubfake.PR) { pr.Draft = true })
	must(w.hub.PushPR(t.Context(), repo, n, nil))
	if got := f.tasks(); len(got) != 0 {
		t.Fatalf("a draft made %+v", got)
	}
	for _, action := range []string{"ready_for_review", "closed", "reopened"} {
		if err := w.hub.ChangePR(t.Context(), repo, n, action, "octocat"); err != nil {
			t.Fatal(err)
		}
	}
	var actions []string
	for _, task := range f.tasks() {
		actions = append(actions, must(subject.Of(task)).Action)
	}
	if diff := cmp.Diff([]string{"reopened"}, actions); diff != "" {
		t.Error(diff)
	}
}

func TestIgnoredPullRequests(t *testing.T) {
	both(t, func(w *world) {
		f := w.listen()
		bot := "errand"
		if w.src.forge.IsApp() {
			bot = "errand[bot]"
		}
		expect := func(want string) {
			w.Helper()
			if d := must2(w.hub.LastDelivery("pull_request")); d.Status != http.StatusAccepted {
				w.Errorf("%s: answered with %d", want, d.Status)
			}
			if all := strings.Split(w.logs.String(), "\n"); !slices.ContainsFunc(all, func(l string) bool {
				return strings.Contains(l, "level=INFO") && strings.Contains(l, want)
			}) {
				w.Errorf("the log does not say %q:\n%s", want, w.logs)
			}
		}
		w.open(func(pr *githubfake.PR) { pr.User, pr.Head = "dependabot[bot]", "bump" })
		expect("by a bot")
		w.open(func(pr *githubfake.PR) { pr.User, pr.Head = bot, "own" })
		expect(map[bool]string{true: "by a bot", false: "errand's own"}[strings.HasSuffix(bot, "]")])
		n := w.open(func(pr *githubfake.PR) { pr.Fork, pr.Head, pr.User = true, "theirs", "stranger" })
		expect("from a fork")
		if err := w.hub.DeleteFork(repo, n); err != nil {
			w.Fatal(err)
		}
		status, said := f.send("pull_request", must(w.hub.Payload("reopened", repo, n, "stranger")),
			githubfake.SendOptions{})
		if status != 202 || !strings.HasPrefix(said, "Ignored: The pull request comes from a fork. ") {
			w.Errorf("deleted fork: %d %s", status, said)
		}
		status, said = f.send("pull_request", must(w.hub.Payload("reopened", repo, 2, "octocat")),
			githubfake.SendOptions{})
		want := map[bool]string{
			true:  "Ignored: The pull request was opened by a bot.",
			false: "Ignored: The pull request or the change is errand's own.",
		}
		if status != 202 || strings.TrimSpace(said) != want[strings.HasSuffix(bot, "]")] {
			w.Errorf("our own, reopened by another: %d %s", status, said)
		}
		if got := f.tasks(); len(got) != 0 {
			w.Errorf("made %+v", got)
		}
		// Our own push to a person's pull request should start nothing.
		n = w.open(func(pr *githubfake.PR) { pr.Head = "mended" })
		status, said = f.send("pull_request", must(w.hub.Payload("synchronize", repo, n, bot)),
			githubfake.SendOptions{})
		if status != 202 || said != "Ignored: The pull request or the change is errand's own." || len(f.tasks()) != 1 {
			w.Errorf("our own push: %d %s, %d tasks", status, said, len(f.tasks()))
		}
	})
}

// A head that errand does not review by itself has no check, which would be noise on every pull request by a bot. A
// review that a person requests reports one.
func TestUnreviewedHeadsHaveNoCheck(t *testing.T) {
	both(t, func(w *world) {
		f := w.listen()
		w.hub.SetPermission(repo, "ann", "write")
		lights := func(n int) int {
			head := w.pull(n).HeadSHA
			return len(w.hub.CheckRuns(repo, head)) + len(w.hub.Statuses(repo, head))
		}
		bot := w.open(func(pr *githubfake.PR) { pr.User, pr.Head = "dependabot[bot]", "bump" })
		if n := lights(bot); n != 0 || len(f.tasks()) != 0 {
			w.Errorf("by a bot: %d lights, tasks %+v", n, f.tasks())
		}
		ask := must(w.hub.Payload("review_requested", repo, bot, "ann"))
		ask["requested_reviewer"] = map[string]any{"login": must(w.src.forge.Login(w.Context()))}
		f.send("pull_request", ask, githubfake.SendOptions{})
		w.report(f.only())
		if n := lights(bot); n == 0 {
			w.Error("a requested review reports nothing")
		}
	})
}

// An unsigned request counts as a stranger's.
func TestPullRequestFromNowhere(t *testing.T) {
	t.Parallel()
	if pr := new(github.PullRequest); !hub.IsFork(pr) || subject.ProfileOf(pr, agent.Write) != agent.Untrusted {
		t.Error("it counts as one of ours")
	}
}

func TestOtherRepositoriesAreIgnored(t *testing.T) {
	t.Parallel()
	w := withToken(t, func(c *config) { c.Repository = func(name string) bool { return name == "acme/web" } })
	f := w.listen()
	must(w.hub.CreateRepo("acme", "web", map[string]string{"a": "b"}))
	w.open()
	w.open(func(pr *githubfake.PR) { pr.Repo = "acme/web" })
	if got := f.tasks(); len(got) != 1 || got[0].Repo != "acme/web" {
		t.Errorf("got %+v", got)
	}
	if d := must2(w.hub.LastDelivery("")); d.Status != http.StatusAccepted {
		t.Errorf("answered with %d", d.Status)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	n := w.open(func(pr *githubfake.PR) { pr.Draft = true })
	payload := must(w.hub.Payload("ready_for_review", repo, n, "octocat"))
	payload["pull_request"].(map[string]any)["draft"] = false
	without := func(key string) map[string]any {
		p := must(w.hub.Payload("opened", repo, n, "octocat"))
		delete(p, key)
		return p
	}
	old := must(w.hub.Payload("opened", repo, n, "octocat"))
	pull := old["pull_request"].(map[string]any)
	pull["draft"], pull["updated_at"] = false, nil
	for _, c := range []struct {
		name, event string
		payload     any
		o           githubfake.SendOptions
		status      int
		said        string
	}{
		{
			"ping", "ping",
			map[string]any{"zen": "Keep it logically awesome."},
			githubfake.SendOptions{},
			200,
			"Webhook is set up.",
		},
		{
			"unsigned", "pull_request", payload,
			githubfake.SendOptions{Signature: githubfake.SignNone},
			401,
			"X-Hub-Signature-256",
		},
		{
			"wrong secret", "pull_request", payload,
			githubfake.SendOptions{Signature: githubfake.SignWrong},
			401,
			"X-Hub-Signature-256",
		},
		{
			"SHA-1 alone", "pull_request", payload,
			githubfake.SendOptions{Signature: githubfake.SignSHA1},
			401,
			"X-Hub-Signature-256",
		},
		{
			"unsigned ping", "ping", payload,
			githubfake.SendOptions{Signature: githubfake.SignNone},
			401,
			"X-Hub-Signature-256",
		},
		{"too large", "pull_request", nil, githubfake.SendOptions{Body: make([]byte, intake.MaxEvent+1)}, 413, "1 MiB"},
		{"as large as can be", "watch", nil, githubfake.SendOptions{Body: make([]byte, intake.MaxEvent)}, 202, "Ignored"},
		{
			"malformed", "pull_request", nil,
			githubfake.SendOptions{Body: []byte("{")},
			400,
			"The payload is not JSON.",
		},
		{
			"changed type", "pull_request", nil,
			githubfake.SendOptions{Body: []byte(`{"action":"opened","pull_request":[]}`)},
			202,
			"the event cannot be interpreted",
		},
		{
			"without pull request", "pull_request", without("pull_request"),
			githubfake.SendOptions{},
			202,
			"the event cannot be interpreted",
		},
		{
			"without repository", "pull_request", without("repository"),
			githubfake.SendOptions{},
			202,
			"the event cannot be interpreted",
		},
		{
			"unknown event", "watch",
			map[string]any{"action": "started"},
			githubfake.SendOptions{},
			202,
			"There is nothing to do for watch",
		},
		{
			"unknown action", "pull_request",
			map[string]any{"action": "locked"},
			githubfake.SendOptions{},
			202,
			"There is nothing to do for pull_request locked",
		},
		{"refused by the desk", "pull_request", old, githubfake.SendOptions{}, 202, "Refused: Task ID"},
		{"form", "pull_request", payload, githubfake.SendOptions{Form: true}, 202, "Task "},
	} {
		before := len(f.tasks())
		status, said := f.send(c.event, c.payload, c.o)
		if status != c.status || !strings.Contains(said, c.said) {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, said, c.status, c.said)
		}
		if made := len(f.tasks()) - before; made != map[bool]int{true: 1}[c.name == "form"] {
			t.Errorf("%s: made %d tasks", c.name, made)
		}
	}
	if !strings.Contains(w.logs.String(), "webhook refused") {
		t.Errorf("the refusal was not logged:\n%s", w.logs)
	}
}

// A SHA-1 in the header for the SHA-256 has the right form for go-github.
func TestSHA1InTheWrongHeader(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	w.open(func(pr *githubfake.PR) { pr.Draft = true })
	d := must2(w.hub.LastDelivery("pull_request"))
	req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, f.url, strings.NewReader(string(d.Body))))
	req.Header = d.Header.Clone()
	req.Header.Set("X-Hub-Signature-256", d.Header.Get("X-Hub-Signature"))
	resp := must(http.DefaultClient.Do(req))
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("answered with %d", resp.StatusCode)
	}
}

func TestOtherContentTypeAndMethod(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	w.open(func(pr *githubfake.PR) { pr.Draft = true })
	d := must2(w.hub.LastDelivery("pull_request"))
	for method, want := range map[string]int{
		http.MethodPost: http.StatusBadRequest, http.MethodPut: http.StatusMethodNotAllowed,
	} {
		req := must(http.NewRequestWithContext(t.Context(), method, f.url, strings.NewReader(string(d.Body))))
		req.Header = d.Header.Clone()
		req.Header.Set("Content-Type", "text/plain")
		resp := must(http.DefaultClient.Do(req))
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: answered with %d, want %d", method, resp.StatusCode, want)
		}
	}
}

// While GitHub does not say who errand is, an event waits.
func TestListenWithoutLogin(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	w.hub.Fail("GET /user", githubfake.Failure{Status: 500})
	pr := githubfake.PR{Repo: repo, Head: "change", Files: map[string]string{"a": "b"}}
	if _, err := w.hub.OpenPR(t.Context(), pr); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v, want 503", err)
	}
	hook := must2(w.hub.LastDelivery("pull_request"))
	if err := w.hub.Redeliver(t.Context(), hook.GUID); err != nil || len(f.tasks()) != 1 {
		t.Errorf("%v, %d tasks\n%s", err, len(f.tasks()), w.logs)
	}
}

// GitHub shows an operator which events were not stored.
func TestUnstoredWebhooks(t *testing.T) {
	t.Parallel()
	inbox := &taskstest.Inbox{}
	inbox.Refuse(errors.New("Redis does not answer"))
	w := withToken(t, func(c *config) { c.Inbox = inbox })
	f := w.listen()
	event := map[string]any{"action": "opened"}
	if status, said := f.send("issues", event, githubfake.SendOptions{}); status != 503 ||
		!strings.Contains(said, "Redeliver it") || !strings.Contains(w.logs.String(), "store webhook") {
		t.Errorf("%d %s", status, said)
	}
}

func TestRealPayloads(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	var got []tasks.Task
	for _, c := range []struct{ action, said string }{
		{"opened", "Task "},
		{"synchronize", "Task "},
		{"ready_for_review", "Task "},
		{"converted_to_draft", "Stopped the reviews of Codertocat/Hello-World#2. The pull request is a draft."},
	} {
		body := must(os.ReadFile("testdata/pull_request." + c.action + ".json"))
		status, said := f.send("pull_request", nil,
			githubfake.SendOptions{Body: body, GUID: "72d3162e-cc78-11e3-81ab-" + c.action})
		if status != 202 || !strings.HasPrefix(said, c.said) {
			t.Errorf("%s: %d %s", c.action, status, said)
		}
		if c.action == "opened" {
			got = f.tasks()
		}
	}
	if left := f.tasks(); len(left) != 0 {
		t.Errorf("of a draft there is left %+v", left)
	}
	const sha = "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
	want := []tasks.Task{{
		ID: "1557933633000000-github-72d3162e-cc78-11e3-81ab-opened", Source: "github", Kind: "review",
		Thread: "github/Codertocat/Hello-World#2/review", Class: tasks.Review, Profile: agent.Read,
		Repo: "Codertocat/Hello-World", Ref: sha, Actor: "Codertocat",
		Prompt: "Review pull request #2 of Codertocat/Hello-World: Update the README with new information.",
		Origin: must(json.Marshal(subject.Origin{
			Ref:  thread.Ref{Repo: "Codertocat/Hello-World", Number: 2, Installation: 1},
			Head: sha, Base: "master",
			BaseSHA: "f95f852bd8fca8fcc58a9a2d6c842781e32a215e",
			Title:   "Update the README with new information.",
			Body:    "This is a pretty simple change that we need to pull into master.",
			URL:     "https://github.com/Codertocat/Hello-World/pull/2", Action: "opened",
		})),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// must2 is must for what is there or not.
func must2[T any](v T, ok bool) T {
	if !ok {
		panic("not there")
	}
	return v
}

// The App subscribes to the events that errand handles, and to no others.
func TestEventsAreSubscribedTo(t *testing.T) {
	t.Parallel()
	var events []string
	for kind := range handlers {
		if event, _, _ := strings.Cut(kind, " "); event != polledEvent {
			events = append(events, event)
		}
	}
	slices.Sort(events)
	if diff := cmp.Diff(slices.Compact(events), hub.Events()); diff != "" {
		t.Error(diff)
	}
}
