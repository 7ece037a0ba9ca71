package desk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// in returns a context whose visitor has a role in the repositories of an owner, and elsewhere another one.
func in(ctx context.Context, owner string, there, elsewhere policy.Role) context.Context {
	return people.WithVisitor(ctx, people.Visitor{
		Name: "token:ci", Role: max(there, elsewhere),
		In: func(_ context.Context, repo string) policy.Repo {
			if strings.HasPrefix(repo, owner+"/") {
				return policy.Repo{Role: there}
			}
			return policy.Repo{Role: elsewhere}
		},
	})
}

// A visitor starts tasks only where they have the role, and continues only conversations that they may read: the agent
// would repeat what was said there.
func TestWhoMayStartTasks(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.Host = "forge.test"
	at := func(repo, dir string) func(*tasks.Task) { return func(t *tasks.Task) { t.Repo, t.Dir = repo, dir } }
	continues := func(thread string) func(*tasks.Task) {
		return func(t *tasks.Task) { t.Repo, t.Thread = "acme/app", thread }
	}
	old := func(thread string) func(*tasks.Task) {
		return func(t *tasks.Task) { t.Repo, t.Thread = "acme/app", "fake/"+thread }
	}
	ask := func(ctx context.Context, name string, change func(*tasks.Task)) error {
		task := f.task(name, "do it")
		task.Source, task.Actor, task.Thread = "chat", people.Actor(ctx), "chat/"+name
		change(&task)
		_, err := f.desk.Submit(ctx, task)
		return err
	}
	// Conversations of others: in our repository, in another one, outside of repositories, and one that changed its
	// repository on the way.
	for thread, repos := range map[string][]string{
		"chat/ours": {"acme/app"}, "chat/theirs": {"other/app"}, "chat/none": {""},
		"chat/moved": {"other/app", "acme/app"},
	} {
		for _, repo := range repos {
			task := f.task("x", "do it")
			task.Source, task.Thread, task.Repo = "chat", thread, repo
			f.submit(task)
		}
	}
	// Their tasks have expired, but not what the agent remembers.
	for thread, notes := range map[string]string{
		"old-ours": `{"repos":["acme/app"]}`, "old-theirs": `{"repos":["acme/app","forge.test/other/app"]}`,
		"old-none": `{"repos":["","acme/app"]}`, "old-all": `{"repos":["","other/app"]}`, "old-unknown": `{}`,
	} {
		f.concludes(f.task(thread, "do it"), notes)
	}
	limited := in(f.Context(), "acme", policy.User, policy.Anyone)
	for name, tc := range map[string]struct {
		ctx    context.Context
		change func(*tasks.Task)
		want   string // "": allowed
	}{
		"without-a-repository": {limited, at("", ""), ""},
		"in-their-repository":  {limited, at("acme/app", ""), ""},
		"with-the-host":        {limited, at("forge.test/acme/app", ""), ""},
		"in-another-with-host": {limited, at("forge.test/other/app", ""), "You may not start tasks in other/app."},
		"in-a-directory":       {limited, at("", "/srv/app"), "You may not start tasks outside of repositories."},
		"continue-ours":        {limited, continues("chat/ours"), ""},
		"continue-theirs":      {limited, continues("chat/theirs"), "You may not continue this conversation."},
		"continue-private":     {limited, continues("chat/none"), "You may not continue this conversation."},
		"continue-moved":       {limited, continues("chat/moved"), "You may not continue this conversation."},
		"old-ours":             {limited, old("old-ours"), ""},
		"old-theirs":           {limited, old("old-theirs"), "You may not continue this conversation."},
		"old-private":          {limited, old("old-none"), "You may not continue this conversation."},
		"old-not-known": {
			limited, old("old-unknown"), "I no longer know which repositories this thread has been about.",
		},
		"viewer-of-all": {
			people.WithVisitor(f.Context(), people.Visitor{Role: policy.Viewer}), at("acme/app", ""), "You may not start tasks in acme/app.",
		},
		"user-of-all":          {people.WithVisitor(f.Context(), people.Visitor{Role: policy.User}), at("acme/app", ""), ""},
		"viewer-of-the-others": {in(f.Context(), "acme", policy.User, policy.Viewer), continues("chat/theirs"), ""},
	} {
		err := ask(tc.ctx, name, tc.change)
		mistake, refused := errors.AsType[*tasks.InputError](err)
		if (err == nil) != (tc.want == "") || refused && !strings.Contains(mistake.Sentence, tc.want) ||
			err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Their own conversation outside of repositories goes on.
	if err := f.redis().HSet(t.Context(), "errand:session:chat/without-a-repository", "meta", `{"repos":[""]}`).Err(); err != nil {
		t.Fatal(err)
	}
	mine := func(t *tasks.Task) { t.Thread = "chat/without-a-repository" }
	if err := ask(limited, "again", mine); err != nil {
		t.Errorf("continue their own: %v", err)
	}
}

// concludes runs a task, stores notes with the session of its thread and lets everything else of the thread expire.
func (f *harness) concludes(t tasks.Task, notes string) {
	f.Helper()
	claim, err := f.store.Claim(f.Context(), f.submit(t), 0, "w")
	if err == nil {
		err = claim.SaveSession(f.Context(), store.Session{ID: "s", Meta: json.RawMessage(notes)})
	}
	if err == nil {
		err = errors.Join(claim.End(f.Context(), tasks.Ending{Kind: tasks.Answered}.Encode()), claim.Release(f.Context()))
	}
	if err == nil {
		err = f.redis().Del(f.Context(), "errand:thread:"+t.Thread, "errand:topic:"+t.Thread).Err()
	}
	if err != nil {
		f.Fatal(err)
	}
}

// Posts never have the address of a person whose login or name is known.
func TestPublicName(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]people.Visitor{
		"Ann Lee":      {Name: "ann@home.example", Login: "ann-lee", Person: "Ann Lee"},
		"ann-lee":      {Name: "ann@home.example", Login: "ann-lee"},
		"token:ci":     {Name: "token:ci"},
		people.Console: {},
	} {
		if got := people.PublicName(people.WithVisitor(t.Context(), v)); got != want {
			t.Errorf("%+v is named %q", v, got)
		}
	}
}
