package settings

import (
	"context"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/cache"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Reader reads the settings of repositories. It is safe for concurrent use.
type Reader struct {
	api    thread.Client
	gate   *subject.Gate // of runs on forks
	base   func(repo string) string
	recent *cache.Cache[parsed] // what was read lately, by repository and branch
}

// NewReader returns a Reader that remembers what it has read for a short time.
// base returns the branch of a repository that has its settings; "" is the default branch.
func NewReader(api thread.Client, g *subject.Gate, base func(repo string) string) *Reader {
	return &Reader{api: api, gate: g, base: base, recent: hub.Recent[parsed](api.Now)}
}

// Of reads a repository's settings from the branch that the operator has chosen or the default branch, whatever the
// base of a pull request is: anyone who can push can choose another base. unknown describes the invalid parts of the
// file in sentences. The result is cached for a short time.
func (r *Reader) Of(ctx context.Context, t thread.Thread) (c Settings, unknown []string, err error) {
	base := r.base(t.Repo)
	key := strings.ToLower(t.Repo) + " " + base
	known, err := r.recent.Get(ctx, key, func(ctx context.Context) (parsed, error) {
		var name, text string
		for _, name = range environment.Files {
			if text, err = t.File(ctx, base, name); err != nil {
				return parsed{}, err
			}
			if text != "" {
				break
			}
		}
		if len(text) > environment.MaxFile { // a part of the file may have another meaning
			why := fmt.Sprintf("The file is larger than %d KiB, so it is ignored.", environment.MaxFile>>10)
			c, unknown = Settings{Incomplete: true}, []string{why}
		} else {
			c, unknown = Parse([]byte(text))
		}
		c.File = name
		return parsed{c, unknown}, nil
	})
	known.settings.Branch = base
	return known.settings, known.unknown, err
}

// parsed holds the settings of a branch and the errors in them.
type parsed struct {
	settings Settings
	unknown  []string
}

// ApplyTo applies the repository's settings to a task before it is submitted. The error is a subject.Ignored if the
// settings exclude the task. If GitHub does not return the settings, the worker checks them.
func (r *Reader) ApplyTo(ctx context.Context, t subject.Draft) (subject.Draft, error) {
	o := t.About
	if t.Profile == agent.Untrusted && !o.ByPerson() {
		v, err := r.gate.MayRun(ctx, t.Task, o)
		if err != nil {
			return subject.Draft{}, err
		}
		if !v.Allowed {
			return subject.Draft{}, subject.Ignore(v.Reason)
		}
	}
	c, err := r.Read(ctx, o.Ref)
	if err != nil {
		r.api.Log.Warn("handle event without the repository's settings", "err", err)
		return t, nil
	}
	if why := c.Refuses(t.Kind, o, t.Pull, nil); why != "" {
		return subject.Draft{}, subject.Ignore(why)
	}
	return t, nil
}

// Read returns the settings of the repository that an event is about.
func (r *Reader) Read(ctx context.Context, of thread.Ref) (Settings, error) {
	t, err := r.api.Reach(ctx, of)
	if err != nil {
		return Settings{}, err
	}
	c, _, err := r.Of(ctx, t)
	return c, err
}

// VerificationCommands returns all the commands that should succeed before work is published, or an error.
func (r *Reader) VerificationCommands(ctx context.Context, repo string) ([]string, error) {
	t, err := r.api.Reach(ctx, thread.Ref{Repo: repo})
	if err != nil {
		return nil, r.api.BriefError("reach "+repo, err)
	}
	c, _, err := r.Of(ctx, t)
	if err == nil && c.Incomplete {
		err = thread.Refuse("Not all checks in " + c.File + " of " + repo + " can be read.")
	}
	return c.Checks, err
}
