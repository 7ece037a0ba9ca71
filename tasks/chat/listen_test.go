package chat

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
)

func TestRequestBecomesATask(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "project")
	link := filepath.Join(root, "link")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		body string
		want tasks.Task
	}{
		"repository": {
			`{"message": "Fix it", "repo": "acme/app", "agent": "@strategist", "model": "opus", "effort": "low", "thread": "t-1"}`,
			tasks.Task{
				Thread: "chat/t-1", Repo: "acme/app", Prompt: "Fix it",
				Options: tasks.Options{Agent: "strategist", Model: "opus", Effort: "low"},
			},
		},
		"directory, by its real path": {
			`{"message": " /new-feature x\n", "projectPath": "` + link + `/", "thread": "chat/t-2"}`,
			tasks.Task{Thread: "chat/t-2", Dir: dir, Prompt: " /new-feature x\n"},
		},
		"all the options of Slack": {
			`{"message": "Fix it", "repo": "acme/app", "branch": "next", "thread": "t", "budget": 2.5, "timeout": "3s", "plan": true, "directory": "services/api"}`,
			tasks.Task{
				Thread: "chat/t", Repo: "acme/app", Ref: "next", Prompt: "Fix it",
				Options: tasks.Options{MaxUSD: 2.5, Limit: 3 * time.Second, Plan: true, Directory: "services/api"},
			},
		},
		"several repositories": {
			`{"message": "Fix them", "repo": "acme/app", "repos": ["acme/web", "acme/docs"], "thread": "t"}`,
			tasks.Task{Thread: "chat/t", Repo: "acme/app", Also: []string{"acme/web", "acme/docs"}, Prompt: "Fix them"},
		},
		"no budget": {`{"message": "Hi", "thread": "t", "budget": null}`, tasks.Task{Thread: "chat/t", Prompt: "Hi"}},
		"neither":   {`{"message": "Hi", "thread": "t"}`, tasks.Task{Thread: "chat/t", Prompt: "Hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, Config{Dirs: []string{root}, Now: func() time.Time { return now }})
			s := h.ask(test.body)
			want := test.want
			want.ID, want.Source, want.Kind, want.Class, want.Actor = s.id, "chat", "chat", tasks.Interactive, "console"
			want.Profile = agent.Write
			if diff := cmp.Diff(want, h.Status(s.id).Task); diff != "" {
				t.Error(diff)
			}
			if want := tasks.NewID(now, "chat", ""); !strings.HasPrefix(s.id, want) {
				t.Errorf("ID %s does not begin with %s", s.id, want)
			}
		})
	}
}

func TestEachRequestIsATaskAndAThreadOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	a, b := h.Status(h.ask(`{"message": "Hi"}`).id).Task, h.Status(h.ask(`{"message": "Hi"}`).id).Task
	if a.ID == b.ID || a.Thread == b.Thread {
		t.Errorf("two requests became %s in %s and %s in %s", a.ID, a.Thread, b.ID, b.Thread)
	}
}

// A valid traceparent is kept with the task, and another one is ignored.
func TestTraceOfTheCaller(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	const valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for parent, want := range map[string]string{valid: valid, valid + "x": "", "01" + valid[2:]: "", "": ""} {
		resp := h.post(`{"message":"Hi"}`, http.Header{"Traceparent": {parent}})
		_ = resp.Body.Close()
		if got := h.Status(resp.Header.Get("Errand-Task")).Task.Trace; got != want {
			t.Errorf("%q: kept %q", parent, got)
		}
	}
}

func TestThreadCanBeContinued(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{})
	first := h.ask(`{"message": "Hi"}`)
	second := h.ask(`{"message": "And now?", "thread": "` + first.thread + `"}`)
	if a, b := h.Status(first.id).Task.Thread, h.Status(second.id).Task.Thread; a != b {
		t.Errorf("the conversation moved from %s to %s", a, b)
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	h := newHarness(t, Config{Dirs: []string{root}})
	for name, test := range map[string]struct {
		body   string
		status int
		title  string
	}{
		"no JSON":         {`message=hi`, 400, "Malformed JSON"},
		"cut off":         {`{"message": "hi`, 400, "Malformed JSON"},
		"two objects":     {`{"message": "hi"} {}`, 400, "Malformed JSON"},
		"other type":      {`{"message": 1}`, 400, "Malformed JSON"},
		"nothing":         {``, 400, "Malformed JSON"},
		"no message":      {`{"repo": "acme/app"}`, 400, "Empty message"},
		"blank message":   {`{"message": " \n"}`, 400, "Empty message"},
		"thread form":     {`{"message": "hi", "thread": "a/b"}`, 400, "Invalid thread"},
		"thread length":   {`{"message": "hi", "thread": "` + strings.Repeat("a", 41) + `"}`, 400, "Invalid thread"},
		"repository form": {`{"message": "hi", "repo": "../../etc"}`, 400, "Invalid repo"},
		"path":            {`{"message": "hi", "projectPath": "/etc"}`, 400, "Invalid path"},
		"two places": {
			`{"message": "hi", "repo": "acme/app", "projectPath": "` + root + `"}`, 400, "Bad request",
		},
		"model is an option": {`{"message": "hi", "model": "--x"}`, 400, "Bad request"},
		"agent is no name":   {`{"message": "hi", "agent": "a b"}`, 400, "Bad request"},
		"unknown field":      {`{"message": "hi", "timout": "3s"}`, 400, "Unknown field"},
		"profile":            {`{"message": "hi", "profile": "untrusted"}`, 400, "Invalid profile"},
		"timeout form":       {`{"message": "hi", "timeout": "3"}`, 400, "Invalid option"},
		"budget form":        {`{"message": "hi", "budget": -1}`, 400, "Invalid option"},
		"budget in words":    {`{"message": "hi", "budget": "null"}`, 400, "Invalid option"},
		"branch form":        {`{"message": "hi", "repo": "acme/app", "branch": "a..b"}`, 400, "Invalid option"},
		"branch of nothing":  {`{"message": "hi", "branch": "next"}`, 400, "Invalid option"},
		"directory outside":  {`{"message": "hi", "repo": "acme/app", "directory": "a/../.."}`, 400, "Bad request"},
		"no picture": {
			`{"message": "hi", "pictures": [{"name": "x.png", "data": "eA=="}]}`, 400, "Invalid option",
		},
		"too large": {`{"message": "` + strings.Repeat("a", maxBody) + `"}`, 413, "Too large"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.refused(test.body)
			if diff := cmp.Diff(intake.Problem{Status: test.status, Title: test.title}, got,
				cmpopts.IgnoreFields(intake.Problem{}, "Detail")); diff != "" {
				t.Error(diff)
			}
			if got.Detail == "" || test.title == "Unknown field" && !strings.Contains(got.Detail, `"timout"`) {
				t.Errorf("it does not say what to change: %q", got.Detail)
			}
		})
	}
	if list, err := h.Desk.List(t.Context(), desk.Filter{}); err != nil || len(list.Tasks) > 0 {
		t.Errorf("%d tasks were stored, %v", len(list.Tasks), err)
	}
}

func TestMissingRedisIsSaid(t *testing.T) {
	t.Parallel()
	h := newHarnessAt(t, &redis.Options{Addr: "127.0.0.1:1"}, Config{})
	if got := h.refused(`{"message": "hi"}`); got.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v", got)
	}
}

// A Redis that accepts connections and says nothing. The client is patient but honours a caller's deadline, as the
// front door's does: without one, the answer would come after the 20 s that post waits.
func TestHungRedisIsSaid(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := newHarnessAt(t, &redis.Options{
		Addr: l.Addr().String(), ReadTimeout: time.Minute, WriteTimeout: time.Minute, DialTimeout: time.Minute,
		ContextTimeoutEnabled: true,
	}, Config{})
	h.source.submitLimit = 50 * time.Millisecond
	if got := h.refused(`{"message": "hi"}`); got.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v", got)
	}
	if submitLimit >= 3*time.Second {
		t.Errorf("clients are promised an answer within 3 s, and the limit is %s", submitLimit)
	}
}
