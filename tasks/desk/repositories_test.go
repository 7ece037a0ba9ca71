package desk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

func TestFurtherRepositories(t *testing.T) {
	t.Parallel()
	p := rights.Policy{Host: "git.test", Repository: func(name string) (rights.Repository, bool) {
		return map[string]rights.Repository{
			"acme/api": {}, "acme/web": {}, "acme/docs": {Profile: agent.Read}, "acme/ios": {Pool: "mac"},
		}[name], !strings.HasPrefix(name, "other/")
	}}
	for name, tc := range map[string]struct {
		repo    string
		also    string
		profile agent.Profile
		why     string // a refusal
	}{
		"none":          {"acme/api", "", agent.Write, ""},
		"one":           {"acme/api", "acme/web", agent.Write, ""},
		"with the host": {"acme/api", "git.test/acme/web", agent.Write, ""},
		"one is read":   {"acme/api", "acme/web acme/docs", agent.Read, ""},
		"no main one":   {"", "acme/web", "", "Further repositories need a main one: name it, too."},
		"too many": {
			"acme/api", "acme/b acme/c acme/d acme/e acme/f", "",
			"A task works in at most 5 repositories. Ask for the others separately.",
		},
		"the same": {"acme/api", "git.test/ACME/api", "", "ACME/api is named twice. Name each repository once."},
		"twice":    {"acme/api", "acme/web acme/Web", "", "acme/Web is named twice. Name each repository once."},
		"no name":  {"acme/api", "acme", "", `"acme" is not a repository: write it as owner/name.`},
		"not listed": {
			"acme/api", "other/x", "",
			"Repository other/x is not one errand works on. An operator can add it under repositories: in errand.yaml.",
		},
		"another pool": {
			"acme/api", "acme/ios", "",
			"Workers of pool default run the tasks of acme/api, and those of pool mac the tasks of acme/ios. Ask for each separately, or have an operator give both the same pool in errand.yaml.",
		},
		"of a stranger!": {
			"acme/api", "acme/web", agent.Untrusted,
			"Work on untrusted content has only its own repository. Name no other.",
		},
	} {
		task := newTask(1)
		task.Repo, task.Also, task.Profile = tc.repo, strings.Fields(tc.also), agent.Write
		if strings.HasSuffix(name, "!") {
			task.Profile = agent.Untrusted
		}
		task, err := p.Apply(task)
		if sentence(err) != tc.why || (err == nil) != (tc.why == "") || err == nil && task.Profile != tc.profile {
			t.Errorf("%s: %s, %v", name, task.Profile, err)
		}
		if err == nil && strings.Contains(strings.Join(task.Also, " "), "git.test") {
			t.Errorf("%s: %v", name, task.Also)
		}
	}
}

func newTask(n int) tasks.Task {
	return tasks.Task{
		ID: "170000000000000" + string(rune('0'+n)) + "-fake-x", Source: "fake", Thread: "fake/x", Class: tasks.Interactive,
		Profile: agent.Write, Prompt: "do it",
	}
}

// A run for one set of repositories takes up no message for another one.
func TestMergeKeyOfRepositories(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, also := range [][]string{nil, {"acme/web"}, {"acme/docs"}, {"acme/web", "acme/docs"}} {
		task := newTask(1)
		task.Repo, task.Also = "acme/api", also
		keys[tasks.MergeKey(task)] = true
	}
	if len(keys) != 4 {
		t.Errorf("%v", keys)
	}
}

// What limits a person in one of the repositories limits them in the task.
func TestRightsInAllRepositories(t *testing.T) {
	t.Parallel()
	broken := errors.New("bad gateway")
	l := levels{
		"writer secret/a": "write", "writer secret/b": "write", "writer secret/read": "read",
		"writer secret/open": "write", "writer public/a": "write", "writer public/b": "write",
		"writer secret/broken": broken, "writer public/unseen": "write", "private public/unseen": forge.ErrNotFound,
	}
	for name, tc := range map[string]struct {
		channel, repo, also string
		profile             agent.Profile
		why                 string
	}{
		"none in the second": {"D1", "secret/a", "secret/none", "", "writer has no access to secret/none."},
		"the channel of one": {
			"C1", "secret/a", "secret/b", "",
			"secret/b is private, and its answers may not be posted in this channel. Ask me in a direct message, or have an operator add the channel under channels: in errand.yaml.",
		},
		"public, unseen by bot": {
			"D1", "public/unseen", "public/a", "",
			"public/a is public and public/unseen is not, and pull requests in the one could show what is in the other. Ask for each in a separate conversation.",
		},
		"no answer": {"D1", "secret/a", "secret/broken", "", "-"},
	} {
		f := limited(t, l)
		task := f.request("a", "UW", tc.repo, tc.channel)
		task.Also = strings.Fields(tc.also)
		profile, err := f.permit(task)
		if tc.why == "-" {
			if !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if sentence(err) != tc.why || (err == nil) != (tc.why == "") || err == nil && profile != tc.profile {
			t.Errorf("%s: %s, %v", name, profile, err)
		}
	}
}

// A comment on the pull request in one repository continues the conversation about all of them only for people who may
// read all of them.
func TestConversationOfAPullRequest(t *testing.T) {
	t.Parallel()
	l := levels{"ann secret/a": "read", "eve secret/b": "write"}
	for name, tc := range map[string]struct {
		thread, actor, notes string
		why                  string
	}{
		"may read all": {"slack/x", "ann", `{"repos":["secret/a","secret/b"]}`, ""},
		"may read only this one": {
			"slack/x", "eve", `{"repos":["secret/a","secret/b"]}`,
			"This thread has been about a repository that you may not read. Start a new one.",
		},
		"only about this one": {"slack/x", "eve", `{"repos":["secret/b"]}`, ""},
		"not known": {
			"slack/x", "ann", `{}`, "I no longer know which repositories this thread has been about. Start a new one.",
		},
		"its own, not known": {"github/secret/b#1", "eve", `{}`, ""},
	} {
		f := limited(t, l)
		first := f.task("a", "x")
		first.Thread = tc.thread
		claim, err := f.store.Claim(t.Context(), f.submit(first), 0, "w")
		if err == nil {
			err = claim.SaveSession(t.Context(), store.Session{ID: "s", Meta: json.RawMessage(tc.notes)})
		}
		if err != nil {
			t.Fatal(err)
		}
		next := f.task("a", "and now?")
		next.Source, next.Thread, next.Actor, next.Repo = "github", tc.thread, tc.actor, "secret/b"
		if _, err := f.permit(next); sentence(err) != tc.why ||
			(err == nil) != (tc.why == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A token that is limited to some repositories must cover all of a task's: to start it, to see it, and to continue its
// conversation.
func TestRolesInAllRepositories(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	limited := in(f.Context(), "acme", policy.User, policy.Anyone)
	ask := func(ctx context.Context, thread string, repos ...string) (string, error) {
		task := f.task(thread, "do it")
		task.Source, task.Actor, task.Thread, task.Repo, task.Also = "chat", people.Actor(ctx), "chat/"+
			thread, repos[0], repos[1:]
		_, err := f.desk.Submit(ctx, task)
		return task.ID, err
	}
	if _, err := ask(limited, "ours", "acme/api", "acme/web"); err != nil {
		t.Error(err)
	}
	for _, repos := range [][]string{{"acme/api", "other/x"}, {"other/x", "acme/api"}} {
		if _, err := ask(limited, "a", repos...); sentence(err) != "You may not start tasks in other/x." {
			t.Errorf("start in %v: %v", repos, err)
		}
		mixed, err := ask(f.Context(), "mixed-"+strings.ReplaceAll(repos[0], "/", "-"), repos...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.desk.Status(limited, mixed); !errors.Is(err, tasks.ErrNotFound) {
			t.Errorf("sees %v: %v", repos, err)
		}
		if _, err := f.desk.Cancel(limited, mixed, "ci"); !errors.Is(err, tasks.ErrNotFound) {
			t.Errorf("stops %v: %v", repos, err)
		}
		if _, err := ask(limited,
			"mixed-"+strings.ReplaceAll(repos[0], "/", "-"),
			"acme/api"); sentence(err) != "You may not continue this conversation. Start a new one." {
			t.Errorf("continues %v: %v", repos, err)
		}
	}
	list, err := f.desk.List(limited, Filter{})
	if err != nil || len(list.Tasks) != 1 || !slices.Equal(list.Tasks[0].Task.Also, []string{"acme/web"}) {
		t.Errorf("lists %+v, %v", list.Tasks, err)
	}
	if list, err := f.desk.List(f.Context(), Filter{Repo: "other/x"}); err != nil || len(list.Tasks) != 2 {
		t.Errorf("in other/x: %+v, %v", list.Tasks, err)
	}
}
