package desk

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A run has the files of a submodule if everybody may have them, or if its asker may read them and no answer shows them
// to others. Where nobody has asked, the operator has to list what is private.
func TestPermitSubmodule(t *testing.T) {
	t.Parallel()
	broken := errors.New("bad gateway")
	l := levels{
		"writer secret/a": "write", "writer secret/sub": "read", "writer public/a": "write", "reader secret/a": "read",
		"private secret/dark": broken, "writer secret/dark": "read",
	}
	slack := func(actor, repo, channel string) func(f *harness) tasks.Task {
		return func(f *harness) tasks.Task { return f.request("a", actor, repo, channel) }
	}
	github := func(actor, repo string, unasked bool) func(f *harness) tasks.Task {
		return func(f *harness) tasks.Task {
			task := f.request("a", actor, repo, "")
			task.Source, task.Thread, task.Unasked = "github", "github/"+repo+"#1", unasked
			return task
		}
	}
	unlisted := func(p *rights.Policy) {
		p.Repository = func(name string) (rights.Repository, bool) {
			return rights.Repository{}, !strings.HasSuffix(name, "/sub")
		}
	}
	off := func(p *rights.Policy) { p.Rights.Forge = nil; unlisted(p) }
	none := func(*rights.Policy) {}
	for name, tc := range map[string]struct {
		change func(*rights.Policy)
		task   func(f *harness) tasks.Task
		repo   string
		why    string // its beginning
		err    error
	}{
		"public":                  {unlisted, slack("UX", "public/a", "C2"), "public/sub", "", nil},
		"private":                 {unlisted, slack("UW", "secret/a", "D1"), "secret/sub", "", nil},
		"private in public":       {none, slack("UW", "public/a", "D1"), "secret/sub", notTheirs, nil},
		"private, of others":      {none, slack("UR", "secret/a", "D1"), "secret/sub", notTheirs, nil},
		"private, in a channel":   {none, slack("UW", "secret/a", "C1"), "secret/sub", notTheirs, nil},
		"commented":               {unlisted, github("writer", "secret/a", false), "secret/sub", "", nil},
		"commented, of others":    {none, github("reader", "secret/a", false), "secret/sub", notTheirs, nil},
		"commented, in public":    {none, github("writer", "public/a", false), "secret/sub", notTheirs, nil},
		"unasked":                 {none, github("reader", "secret/a", true), "secret/sub", "", nil},
		"unasked and not listed":  {unlisted, github("writer", "secret/a", true), "secret/sub", notListed, nil},
		"no limits, listed":       {off, slack("UX", "secret/a", "C2"), "secret/other", "", nil},
		"no limits, not listed":   {off, slack("UX", "secret/a", "C2"), "secret/sub", notListed, nil},
		"the forge does not know": {none, slack("UW", "secret/a", "D1"), "secret/dark", "", broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := limited(t, l, tc.change)
			private, why, err := f.desk.policy.PermitSubmodule(t.Context(), f.store, tc.task(f), tc.repo)
			if !strings.HasPrefix(why, tc.why) || (tc.why == "") != (why == "") || !errors.Is(err, tc.err) ||
				private != strings.HasPrefix(tc.repo, "secret/") {
				t.Errorf("private %v, %q, %v", private, why, err)
			}
		})
	}
}

const (
	notListed = "their repositories are private, and not among"
	notTheirs = "their repositories are private, and the one who asked"
)
