package slack

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/tasks"
)

func TestReadRequest(t *testing.T) {
	t.Parallel()
	rd := newReader("https://github.com")
	for text, want := range map[string]request{
		"count the files":         {prompt: "count the files"},
		"[WIP] is this right?":    {prompt: "[WIP] is this right?"},
		"[a plan] is this right?": {prompt: "[a plan] is this right?"},
		"[ no end":                {prompt: "[ no end"},
		"[repo=a/b\n] x":          {prompt: "[repo=a/b\n] x"},
		"fix [repo=a/b] it":       {prompt: "fix [repo=a/b] it"},
		"[plan] move it":          {prompt: "move it", options: tasks.Options{Plan: true}},
		"[repo=acme/api] fix it":  {prompt: "fix it", repo: "acme/api"},
		"[repo=api] fix it":       {prompt: "fix it", repo: "api"},
		"[repo=acme/api, acme/web plan] fix both": {
			prompt: "fix both", repo: "acme/api", also: []string{"acme/web"}, options: tasks.Options{Plan: true},
		},
		"[repo=acme/api repo=web] fix both": {prompt: "fix both", repo: "acme/api", also: []string{"web"}},
		"[repo=api, web , acme/docs, plan] fix": {
			prompt: "fix", repo: "api", also: []string{"web", "acme/docs"}, options: tasks.Options{Plan: true},
		},
		"[plan, repo=api,web] fix": {
			prompt: "fix", repo: "api", also: []string{"web"}, options: tasks.Options{Plan: true},
		},
		"repo=acme/api, acme/web, fix": {
			prompt: "repo=acme/api, acme/web, fix", repo: "acme/api", also: []string{"acme/web"},
		},
		"repo=api, a/web, a/docs.": {
			prompt: "repo=api, a/web, a/docs.", repo: "api", also: []string{"a/web", "a/docs"},
		},
		"repo=acme/api, please fix": {prompt: "repo=acme/api, please fix", repo: "acme/api"},
		"in repo=acme/api,acme/web: fix": {
			prompt: "in repo=acme/api,acme/web: fix", repo: "acme/api", also: []string{"acme/web"},
		},
		"[repo=none]what is a monad": {prompt: "what is a monad", repo: "none"},
		"[REPO=acme/api, branch=fix/1 model=sonnet[1m] effort=high budget=$2.5 directory=services/api timeout=30m plan] go\non": {
			prompt: "go\non", repo: "acme/api", ref: "fix/1",
			options: tasks.Options{
				Model: "sonnet[1m]", Effort: "high", MaxUSD: 2.5, Limit: 30 * time.Minute, Plan: true,
				Directory: "services/api",
			},
		},
		"[repo=https://github.com/acme/api/tree/dev] go": {prompt: "go", repo: "acme/api", ref: "dev"},
		"in repo=acme/api, fix it": {
			prompt: "in repo=acme/api, fix it", repo: "acme/api",
		},
		"myrepo=acme/api":                               {prompt: "myrepo=acme/api"},
		"see https://github.com/acme/api":               {repo: "acme/api"},
		"see github.com/acme/api.git.":                  {repo: "acme/api"},
		"see https://github.com/ann_acme/api":           {repo: "ann_acme/api"},
		"see (https://github.com/acme/api)":             {repo: "acme/api"},
		"see https://www.GitHub.com/acme/api/blob/x/y":  {repo: "acme/api"},
		"see https://github.com/acme/api/tree/dev":      {repo: "acme/api", ref: "dev"},
		"see https://github.com/acme/api/tree/a%2Fb":    {repo: "acme/api", ref: "a/b"},
		"see https://github.com/acme/api/tree/dev/docs": {repo: "acme/api"},
		"see https://github.com/acme/api/tree/a%20b":    {repo: "acme/api"},
		"see https://github.com/acme/api/issues/3":      {repo: "acme/api"},
		"see https://github.com/acme/api/pull/3": {
			repo: "acme/api", pull: pull{"acme/api", 3, true},
		},
		"see https://github.com/acme/api/pull/3/files": {
			repo: "acme/api", pull: pull{"acme/api", 3, true},
		},
		"see https://github.com/acme/api/pull/3#d.": {
			repo: "acme/api", pull: pull{"acme/api", 3, true},
		},
		"see https://github.com/acme/api/pull/x": {repo: "acme/api"},
		"fix acme/api#12, please": {
			repo: "acme/api", verb: fix, pull: pull{"acme/api", 12, false},
		},
		"acme/api#12 is github.com/acme/api/pull/12": {
			repo: "acme/api", pull: pull{"acme/api", 12, true},
		},
		"acme/api#12 or acme/api#13": {repo: "acme/api"},
		"acme/api#12 and github.com/acme/api": {
			repo: "acme/api", pull: pull{"acme/api", 12, false},
		},
		"[branch=dev] acme/api#12": {
			prompt: "acme/api#12", repo: "acme/api", ref: "dev",
		},
		"as acme/api#1 does in acme/web#2":                           {several: []string{"acme/api", "acme/web"}},
		"acme/api and src/main.go, a/b":                              {},
		"x/acme/api#1 #12":                                           {},
		"https://github.com/orgs/acme https://github.com/settings/x": {},
		"https://notgithub.com/acme/api https://github.com.evil/a/b": {},
		"mail me@github.com/acme/api":                                {},
	} {
		if want.prompt == "" {
			want.prompt = text
		}
		got, err := rd.read(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{}, pull{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// An option that cannot be honoured is never ignored.
func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[model=opus draft] x":   `"draft"`,
		"[repo=a/b colour=red]":  `There is no option "colour". The options are repo, branch, directory, model, effort, budget, timeout and plan.`,
		"[plan=yes] x":           `"plan=yes"`,
		"[repo= model=opus] x":   `"repo="`,
		"[repo=a/b/c] x":         `"a/b/c" is not a repository`,
		"[branch=a..b] x":        `"a..b" is not the name of a branch`,
		"[branch=refs/pull/1] x": `"refs/pull/1" is not the name of a branch`,
		"[branch=-x] x":          `"-x"`,
		"[budget=much] x":        `"much" is not a budget`,
		"[budget=-1] x":          `"-1"`,
		"[budget=NaN] x":         `"NaN"`,
		"[budget=inf] x":         `"inf"`,
		"[timeout=30] x":         `"30" is not a duration`,
		"[timeout=-1h] x":        `"-1h"`,
	} {
		_, err := newReader("").read(text)
		input, ok := errors.AsType[*tasks.InputError](err)
		if !ok || !strings.Contains(input.Sentence, want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// GitHub Enterprise has another host, and possibly a path.
func TestAddressOfGitHub(t *testing.T) {
	t.Parallel()
	const text = "see https://code.acme.org:8443/git/acme/api/pull/7 and https://github.com/acme/web/pull/8"
	for address, want := range map[string]string{
		"https://code.acme.org:8443/git": "acme/api", "https://github.com": "acme/web",
		"https://codeXacme.org:8443/git": "", "": "", ":": "",
	} {
		r, err := newReader(address).read(text)
		if err != nil || r.repo != want {
			t.Errorf("%q: %q, %v; want %q", address, r.repo, err, want)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	for _, text := range []string{
		"[repo=a/b branch=c model=d[1m] budget=1 timeout=1m plan] x", "[[", "[]", "[=]",
		"a/b#1 https://github.com/a/b/pull/1/x", "repo=a/b",
	} {
		f.Add(text)
	}
	rd := newReader("https://github.com")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := rd.read(text)
		if err != nil {
			if _, ok := errors.AsType[*tasks.InputError](err); !ok {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if !strings.HasSuffix(strings.TrimSpace(text), strings.TrimSpace(r.prompt)) {
			t.Errorf("%q: prompt %q is not its end", text, r.prompt)
		}
		if utf8.ValidString(text) && !utf8.ValidString(r.prompt+r.repo+r.ref) {
			t.Errorf("%q: %+v is not UTF-8", text, r)
		}
		if _, bad := tasks.ParseBranch(r.ref); r.ref != "" && bad != nil || r.options.MaxUSD < 0 ||
			r.options.Limit < 0 {
			t.Errorf("%q: %+v", text, r)
		}
		if r.pull.number != 0 && (!strings.EqualFold(r.pull.repo, r.repo) || r.ref != "" || len(r.several) > 0) {
			t.Errorf("%q: %+v", text, r)
		}
	})
}
