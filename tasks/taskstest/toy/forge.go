package toy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Forge is a code host whose repositories are bare ones in a directory: acme/api is acme/api.git. It is safe for
// concurrent use.
type Forge struct {
	Dir     string   // of the repositories
	Writers []string // logins of the accounts that may push

	mu    sync.Mutex
	pulls []pull
}

var _ forge.Forge = (*Forge)(nil)

type pull struct {
	forge.PullRequest
	branch, body string
}

// Name is the first word of the names of its threads.
func (*Forge) Name() string { return "toyforge" }

// CloneURL returns the path of a repository. It has been parsed with [forge.ParseRepository].
func (f *Forge) CloneURL(repo string) string {
	return filepath.Join(f.Dir, filepath.FromSlash(repo)+".git")
}

// Credential returns none: paths need none.
func (*Forge) Credential(context.Context, string) (username, password string, err error) {
	return "", "", nil
}

// PullRequest reads a pull request.
func (f *Forge) PullRequest(_ context.Context, repo string, number int) (forge.PullRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pulls {
		if p.Repo == repo && p.Number == number {
			return p.PullRequest, nil
		}
	}
	return forge.PullRequest{}, forge.ErrNotFound
}

// PullRequests lists the pull requests, which all are open here, the newest first.
func (f *Forge) PullRequests(_ context.Context, repo string) ([]forge.PullRequest, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []forge.PullRequest
	for _, p := range slices.Backward(f.pulls) {
		if p.Repo == repo {
			list = append(list, p.PullRequest)
		}
	}
	return list, nil
}

// Publish opens the pull request of a branch, or updates it: a branch has one, however often this is called.
func (f *Forge) Publish(_ context.Context, p forge.Proposal) (forge.PullRequestRef, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.pulls, func(known pull) bool { return known.Repo == p.Repo && known.branch == p.Branch })
	if i < 0 {
		i = len(f.pulls)
		f.pulls = append(f.pulls, pull{branch: p.Branch, PullRequest: forge.PullRequest{
			Repo: p.Repo, Number: i + 1, Author: "errand", Base: p.Base, Draft: !p.Style.Ready,
			URL: fmt.Sprintf("https://toy.example/%s/pull/%d", p.Repo, i+1),
		}})
	}
	known := &f.pulls[i]
	known.Title, known.body = p.Style.Title+p.Title, p.Summary
	return forge.PullRequestRef{Number: known.Number, URL: known.URL, Draft: known.Draft}, nil
}

// Address returns the address of an account in commits.
func (*Forge) Address(_ context.Context, _, login string) (string, error) {
	if login == "" {
		login = "errand"
	}
	return fmt.Sprintf("%s <%[1]s@toy.example>", login), nil
}

// MarkReady marks a draft as ready for review.
func (f *Forge) MarkReady(_ context.Context, repo string, number int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.pulls {
		if p.Repo == repo && p.Number == number {
			f.pulls[i].Draft = false
			return nil
		}
	}
	return &forge.RefusedError{Sentence: "There is no such pull request."}
}

// Permission returns what an account may do.
func (f *Forge) Permission(_ context.Context, _, login string) (forge.Permission, error) {
	if slices.Contains(f.Writers, login) {
		return forge.PermissionWrite, nil
	}
	return forge.PermissionRead, nil
}

// AccountID returns a number that no other account ever gets. Accounts are never renamed here.
func (f *Forge) AccountID(_ context.Context, _, login string) (int64, error) {
	return int64(slices.Index(f.Writers, login) + 1), nil
}

// NameOf returns the name as it is.
func (*Forge) NameOf(_ context.Context, repo string) (string, error) { return repo, nil }

// Private reports that a repository is public.
func (*Forge) Private(context.Context, string) (bool, error) { return false, nil }

// CIStatus reports that no commit has checks.
func (*Forge) CIStatus(context.Context, string, string) (forge.CIStatus, error) {
	return forge.CIStatus{}, nil
}

// Issues is the source of what happens on the forge: comments on issues that mention errand.
type Issues struct {
	Forge  *Forge
	Thread *Place // where comments are posted; all issues share it
}

var (
	_ tasks.Source  = Issues{}
	_ desk.Listener = Issues{}
)

// Name is the forge's name, with which the threads begin.
func (s Issues) Name() string { return s.Forge.Name() }

// comment is an event of the forge.
type comment struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	Author string    `json:"author"`
	Body   string    `json:"body"`
	Repo   string    `json:"repo"`
	Issue  int       `json:"issue"`
}

// origin is what the source remembers of a task's event.
type origin struct {
	Issue int `json:"issue"`
}

// Listen registers the webhook.
func (s Issues) Listen(_ context.Context, mux *http.ServeMux, d *desk.Desk) error {
	mux.HandleFunc("POST /toyforge", func(w http.ResponseWriter, r *http.Request) {
		var c comment
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			http.Error(w, "this is no comment", http.StatusBadRequest)
			return
		}
		t, addressed, err := s.task(c)
		if err == nil && addressed {
			_, err = d.Submit(r.Context(), t)
		}
		answer(w, err)
	})
	return nil
}

// task returns what a comment asks for, if it is for errand.
func (s Issues) task(c comment) (t tasks.Task, addressed bool, err error) {
	prompt, addressed := strings.CutPrefix(c.Body, "@errand ")
	if !addressed {
		return tasks.Task{}, false, nil
	}
	if _, err := forge.ParseRepository(c.Repo); err != nil {
		return tasks.Task{}, false, &tasks.InputError{Sentence: err.Error()}
	}
	from, err := json.Marshal(origin{c.Issue})
	return tasks.Task{
		ID: tasks.NewID(c.At, s.Name(), c.ID), Source: s.Name(), Kind: "comment",
		Thread: fmt.Sprintf("%s/%s#%d", s.Name(), c.Repo, c.Issue), Class: tasks.Interactive, Profile: agent.Write,
		Repo: c.Repo, Actor: c.Author, Login: c.Author, Prompt: prompt, Origin: from,
	}, true, err
}

// Brief checks that the author may push, now and not when they wrote, and names the issue that the work resolves.
func (s Issues) Brief(ctx context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	may, err := s.Forge.Permission(ctx, t.Repo, t.Actor)
	if err != nil {
		return tasks.Brief{}, tasks.FromForge(err)
	}
	if !may.CanWrite() {
		return tasks.Brief{}, &tasks.InputError{Sentence: "You cannot push to this repository."}
	}
	var from origin
	if err := json.Unmarshal(t.Origin, &from); err != nil {
		return tasks.Brief{}, fmt.Errorf("read origin: %w", err)
	}
	return tasks.Brief{System: "You work on an issue.", Fixes: from.Issue, Keep: true}, nil
}

// Capabilities are none.
func (Issues) Capabilities() tasks.Capabilities { return tasks.Capabilities{} }

// Open returns the report of a task.
func (s Issues) Open(_ context.Context, t tasks.Task) (tasks.Report, error) {
	return report{s.Thread, t.ID}, nil
}
