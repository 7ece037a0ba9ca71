package worker

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/workspace"
)

// declare commits .github/errand.yml to a branch of the repository.
func (r *remote) declare(branch, text string) {
	r.Helper()
	r.push("refs/heads/"+branch, map[string]string{environment.File: text})
}

// The agent and the checks get the environment of the base branch, under the operator's.
func TestEnvironmentOfTheBaseBranch(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	r.declare("main", "env: {A: base, B: base, HOME: /evil}\negress: [x.example]\n")
	r.declare("head", "env: {A: head, C: head}\n")
	h.checks = []string{"make test"}
	want := map[string]string{"A": "base", "B": "operator"}
	r.policy.Repository = func(string) (rights.Repository, bool) {
		return rights.Repository{Environment: environment.Declaration{Env: map[string]string{"B": "operator"}}}, true
	}
	r.policy.Egress = agent.Egress{Mode: "list", Hosts: []string{"go"}}
	checked, reach := map[string]string{}, agent.Egress{}
	r.agent.script = func(_ context.Context, s agent.Script) (agent.Scripted, error) {
		checked, reach = s.Env, s.Egress
		return agent.Scripted{Outcome: agent.Done}, nil
	}
	r.worker(r.disk(t.TempDir()), with)
	task := r.repoTask("a")
	task.Ref = "head"
	id := r.submit(task)
	if e := r.ending(id); e.Kind != tasks.Answered {
		t.Fatalf("ending = %+v", e)
	}
	if got := r.agent.specs()[0].Env; !maps.Equal(got, want) {
		t.Errorf("the agent has %v", got)
	}
	if !maps.Equal(checked, want) {
		t.Errorf("the check has %v", checked)
	}
	for _, egress := range []agent.Egress{r.agent.specs()[0].Egress, reach} {
		if !slices.Equal(egress.Hosts, []string{"go", "x.example"}) {
			t.Errorf("a run reaches %+v", egress)
		}
	}
	if said := strings.Join(r.events(id, agent.Notice), "\n"); !strings.Contains(said,
		".github/errand.yml: env: HOME is set by errand.") {
		t.Errorf("followers do not see what is wrong with the file: %s", said)
	}
}

// Runs that execute no commands get no environment. Their page says what is wrong with the file, too, and not more than
// people read.
func TestNoEnvironment(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "env: {A: base, 1: x, 2: x, 3: x, 4: x, 5: x, 6: x, 7: x, 8: x, 9: x, 10: x}\negress: [x.example]\n"+
		"models: {cook: opus}\n")
	r.policy.Egress = agent.Egress{Mode: "list", Hosts: []string{"go"}}
	r.policy.Repository = func(string) (rights.Repository, bool) { return rights.Repository{}, true }
	r.agent.do = nil
	r.worker(r.disk(t.TempDir()))
	for _, c := range []struct {
		thread  string
		profile agent.Profile
	}{{"read", agent.Read}, {"untrusted", agent.Untrusted}} {
		task := r.repoTask(c.thread)
		task.Profile = c.profile
		id := r.submit(task)
		if e := r.ending(id); e.Kind != tasks.Answered {
			t.Fatalf("ending = %+v", e)
		}
		if said := r.events(id, agent.Notice); len(said) != 11 || !strings.Contains(said[0], `"1" is not the name`) ||
			!strings.HasSuffix(said[10], "Further parts that cannot be used: 1.") {
			t.Errorf("followers see %q", said)
		}
	}
	for _, s := range r.agent.specs() {
		if len(s.Env) > 0 || !slices.Equal(s.Egress.Hosts, []string{"go"}) {
			t.Errorf("a run with the profile %s has %v and reaches %+v", s.Profile, s.Env, s.Egress)
		}
	}
}

// A run starts without a file that is too large.
func TestLargeEnvironment(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "env: {A: base}\n#"+strings.Repeat("x", environment.MaxFile))
	r.agent.do = nil
	r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	if e := r.ending(id); e.Kind != tasks.Answered || len(r.agent.specs()[0].Env) > 0 {
		t.Errorf("ending = %+v, %v", e, r.agent.specs()[0].Env)
	}
	if said := strings.Join(r.events(id, agent.Notice), "\n"); !strings.Contains(said, "more than 64 KiB") {
		t.Errorf("followers do not see it: %s", said)
	}
}

// leaves is the script of a set-up that leaves a home and a directory that git ignores, or fails.
func leaves(scripts *[]agent.Script,
	result agent.Scripted,
) func(context.Context, agent.Script) (agent.Scripted, error) {
	return func(_ context.Context, s agent.Script) (agent.Scripted, error) {
		*scripts = append(*scripts, s)
		if len(s.Layers) == 1 && s.Layers[0].Lower == "" { // otherwise it is a check
			for _, dir := range []string{
				filepath.Join(s.Layers[0].Changes, "upper", "go"), filepath.Join(s.Dir, "cache.log"),
			} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return agent.Scripted{}, err
				}
			}
			return result, nil
		}
		return agent.Scripted{Outcome: agent.Done}, nil
	}
}

// The set-up of the base branch runs once. The agent and the checks get what it has left, and the followers see it.
func TestSetUp(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	r.declare("main", "setup: [go mod download, make tools]\npath: [~/go/bin]\nenv: {GOFLAGS: x}\n")
	r.declare("head", "setup: [curl evil]\n")
	h.checks = []string{"make test"}
	r.policy.Repository = func(string) (rights.Repository, bool) { return rights.Repository{}, true }
	var scripts []agent.Script
	r.agent.script = leaves(&scripts, agent.Scripted{Outcome: agent.Done, Duration: 41 * time.Second})
	r.worker(r.disk(t.TempDir()), with, func(c *Config) { c.Slots = 2 })
	task := r.repoTask("a")
	task.Ref = "head"
	first := r.submit(task)
	if e := r.ending(first); e.Kind != tasks.Answered {
		t.Fatalf("ending = %+v", e)
	}
	if e := r.ending(r.submit(r.repoTask("b"))); e.Kind != tasks.Answered {
		t.Fatalf("ending = %+v", e)
	}
	if len(scripts) != 3 || scripts[0].Line != "set -e\ngo mod download\nmake tools" ||
		scripts[0].Env["GOFLAGS"] != "x" || scripts[0].Limit != 30*time.Minute {
		t.Fatalf("%d scripts, the first %+v", len(scripts), scripts[0])
	}
	for i, s := range r.agent.specs() {
		check := scripts[i+1]
		if len(s.Layers) != 2 || s.Layers[0].At != "" || s.Layers[1].At != filepath.Join(s.Dir, "cache.log") ||
			s.SeenAs != scripts[0].Dir || s.Path[0] != "~/go/bin" {
			t.Errorf("run %d has %+v, seen as %s", i, s.Layers, s.SeenAs)
		}
		if !slices.Equal(check.Layers, s.Layers) || check.SeenAs != s.SeenAs || !slices.Equal(check.Path, s.Path) ||
			check.Line != "make test" {
			t.Errorf("the check of run %d has %+v", i, check)
		}
	}
	said := strings.Join(r.events(first, agent.Notice), "\n")
	if !strings.Contains(said, "Setting up the environment of acme/api\n") ||
		!strings.Contains(said, "Set up the environment of acme/api in 41s") {
		t.Errorf("followers see %s", said)
	}
}

// Without a set-up in errand.yml or errand.yaml, that of the base branch's devcontainer.json counts.
func TestDevcontainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file     string
		operator environment.Declaration
		want     string
	}{
		"no set-up": {
			"env: {A: errand, C: errand}\n",
			environment.Declaration{},
			"set -e\n(npm ci\n)",
		},
		"a set-up":              {"setup: [make]\neffort: low\n", environment.Declaration{}, "set -e\nmake"},
		"an empty set-up":       {"setup: []\n", environment.Declaration{}, ""},
		"a set-up by operators": {"env: {A: x}\n", environment.Declaration{Setup: []string{"make"}}, "set -e\nmake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.policy.Repository = func(string) (rights.Repository, bool) {
				return rights.Repository{Environment: c.operator}, true
			}
			const dev = `{"image": "x", "postCreateCommand": "npm ci", "remoteEnv": {"A": "dev", "B": "dev"}} // end`
			const other = ".github/errand.yaml"
			files := map[string]string{
				environment.File: c.file, other: "setup: [other]\n",
				".devcontainer/devcontainer.json": dev, ".devcontainer.json": `{"postCreateCommand": "other"}`,
			}
			if name == "a set-up" {
				files[other] = c.file
				delete(files, environment.File)
			}
			r.push("refs/heads/main", files)
			var scripts []agent.Script
			r.agent.do, r.agent.script = nil, leaves(&scripts, agent.Scripted{Outcome: agent.Done})
			r.worker(r.disk(t.TempDir()))
			id := r.submit(r.repoTask("a"))
			e := r.ending(id)
			if e.Kind != tasks.Answered {
				t.Fatalf("ending = %+v", e)
			}
			if name == "a set-up" && (len(e.Settings) != 1 || e.Settings[0].Of != other) {
				t.Errorf("settings = %+v", e.Settings)
			}
			got := ""
			if len(scripts) > 0 {
				got = scripts[0].Line
			}
			if got != c.want {
				t.Errorf("the set-up is %q", got)
			}
			env, said := r.agent.specs()[0].Env, strings.Join(r.events(id, agent.Notice), "\n")
			if name == "no set-up" && (env["A"] != "errand" || env["B"] != "dev" || env["C"] != "errand" ||
				!strings.Contains(said, "devcontainer.json: image cannot be used")) {
				t.Errorf("the agent has %v, followers see %s", env, said)
			}
			for unused, want := range map[string]bool{
				other + " has no effect beside " + environment.File + ".":                  name != "a set-up",
				".devcontainer.json has no effect beside .devcontainer/devcontainer.json.": name == "no set-up",
			} {
				if strings.Contains(said, unused) != want {
					t.Errorf("followers see %s: %q is %t", said, unused, !want)
				}
			}
		})
	}
}

// The versions of tools that a repository names are installed by mise, or the task and its operators see that they are
// not.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, mise := range []bool{true, false} {
		t.Run(fmt.Sprint(mise), func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.declare("main", "tools: {node: 22, Bad: 1}\nsetup: [npm ci]\npath: [bin]\n")
			var scripts []agent.Script
			r.agent.do, r.agent.script = nil, leaves(&scripts, agent.Scripted{Outcome: agent.Done})
			r.worker(r.disk(t.TempDir()), func(c *Config) { c.Mise = mise })
			id := r.submit(r.repoTask("a"))
			if e := r.ending(id); e.Kind != tasks.Answered || len(scripts) != 1 {
				t.Fatalf("ending = %+v, %d scripts", e, len(scripts))
			}
			spec, said := r.agent.specs()[0], strings.Join(r.events(id, agent.Notice), "\n")
			line, path, version := "set -e\nnpm ci", []string{"bin"}, ""
			if mise {
				line, path, version = "set -e\nmise install --yes\nnpm ci", []string{
					"bin", "~/.local/share/mise/shims",
				}, "22"
			}
			if scripts[0].Line != line || !slices.Equal(spec.Path, path) || spec.Env["MISE_NODE_VERSION"] != version {
				t.Errorf("the set-up is %q, the path %q, the variables %v", scripts[0].Line, spec.Path, spec.Env)
			}
			if !strings.Contains(said, `tools: "Bad: 1" cannot be used`) ||
				strings.Contains(said, "(tools), and the worker has no mise") == mise {
				t.Errorf("followers see %s", said)
			}
		})
	}
}

// A set-up that fails ends the task, with its last words.
func TestFailedSetUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result agent.Scripted
		want   string
	}{
		"exit code": {
			agent.Scripted{
				Outcome: agent.Failed, ExitCode: 7, Duration: time.Second, Output: "npm error\nnpm error 404",
			},
			"The set-up of acme/api ended with exit code 7 after 1s. Its last line: npm error 404",
		},
		"limit": {agent.Scripted{Outcome: agent.Limit}, "The set-up of acme/api did not end within 30m."},
		"signal": {
			agent.Scripted{Outcome: agent.Failed, Signal: "SIGSEGV", ExitCode: -1},
			"The set-up of acme/api was ended by SIGSEGV after",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.declare("main", "setup: [npm ci]\n")
			var scripts []agent.Script
			r.agent.script = leaves(&scripts, c.result)
			r.worker(r.disk(t.TempDir()))
			id := r.submit(r.repoTask("a"))
			if e := r.ending(id); e.Kind != tasks.Failed || !strings.HasPrefix(e.Reason, c.want) ||
				len(r.agent.specs()) > 0 {
				t.Errorf("ending = %+v", e)
			}
			if said := strings.Join(r.events(id, agent.Notice), "\n"); !strings.Contains(said, c.result.Output) {
				t.Errorf("followers see %s", said)
			}
		})
	}
}

// A set-up gets the operator's secrets, which nothing else does. If it leaves one in a file, it has failed.
func TestSecretsOfASetUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"nothing is left": {"", ""},
		"as it is":        {strings.Repeat("x", 1<<20-5) + "npm_secret-1", "go/.npmrc"},
		"in base64":       {"_auth=" + base64.StdEncoding.EncodeToString([]byte("ann:npm_secret-1")), "go/.npmrc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, publishing := publishingFleet(t, (*remote).everything)
			r.declare("main", "setup: [npm ci]\nenv: {A: x}\n")
			h.checks = []string{"make test"}
			var scripts []agent.Script
			leave := leaves(&scripts, agent.Scripted{Outcome: agent.Done})
			r.agent.script = func(ctx context.Context, s agent.Script) (agent.Scripted, error) {
				res, err := leave(ctx, s)
				if err == nil && len(scripts) == 1 {
					err = os.WriteFile(filepath.Join(s.Layers[0].Changes, "upper", "go", ".npmrc"),
						[]byte(c.text), 0o600)
				}
				return res, err
			}
			r.worker(r.disk(t.TempDir()), publishing, func(c *Config) {
				c.Secrets = func(repo string) map[string]string {
					return map[string]string{"TOKEN of " + repo: "npm_secret-1"}
				}
			})
			e := r.ending(r.submit(r.repoTask("a")))
			if got := scripts[0].Env; got["TOKEN of acme/api"] != "npm_secret-1" || got["A"] != "x" {
				t.Errorf("the set-up has %v", got)
			}
			if c.want != "" {
				if e.Kind != tasks.Failed ||
					!strings.Contains(e.Reason, "left the secret TOKEN of acme/api in the file "+c.want) {
					t.Errorf("ending = %+v", e)
				}
				return
			}
			if e.Kind != tasks.Answered || len(r.agent.specs()[0].Env) != 1 || len(scripts) != 2 ||
				len(scripts[1].Env) != 1 {
				t.Errorf("ending = %+v; the agent has %v, the checks %+v", e, r.agent.specs()[0].Env, scripts)
			}
		})
	}
}

// The agent and the checks get a secret only if the operator exposes it, in a sandbox, and only at a head that somebody
// who can push has chosen. Work that has the secret is not published.
func TestExposedSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *remote, t *tasks.Task)
		leaks  string
		want   bool
	}{
		"a branch": {func(*remote, *tasks.Task) {}, "", true},
		"leaked":   {func(*remote, *tasks.Task) {}, "npm_secret-1", true},
		"encoded": {
			func(*remote, *tasks.Task) {}, base64.StdEncoding.EncodeToString([]byte("ann:npm_secret-1")), true,
		},
		"a commit": {func(r *remote, t *tasks.Task) {
			t.Ref = r.git(r.bare(), "rev-parse", "main")
		}, "", false},
		"a branch that is named like a commit": {func(r *remote, t *tasks.Task) {
			t.Ref = "deadbeef"
			r.git(r.bare(), "update-ref", "refs/heads/deadbeef", "main")
		}, "", true},
		"read":       {func(_ *remote, t *tasks.Task) { t.Profile = agent.Read }, "", false},
		"untrusted":  {func(_ *remote, t *tasks.Task) { t.Profile = agent.Untrusted }, "", false},
		"no sandbox": {func(r *remote, _ *tasks.Task) { r.agent.flat = true }, "", false},
		"other base": {func(r *remote, _ *tasks.Task) {
			r.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{Base: "head"}, nil }
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, publishing := publishingFleet(t, func(r *remote, s agent.Spec) {
				if s.Profile == agent.Write {
					r.write(s.Dir, "work", "token: "+c.leaks+"\n")
					r.git(s.Dir, "add", "work")
					r.git(s.Dir, "commit", "--quiet", "--message", "work")
					r.write(s.Dir, "work", "gone\n") // the earlier commit still has it
				}
			})
			r.declare("main", "env: {A: x}\n")
			r.declare("head", "env: {A: x} # head\n")
			h.checks = []string{"make test"}
			var checks []agent.Script
			r.agent.script = func(_ context.Context, s agent.Script) (agent.Scripted, error) {
				checks = append(checks, s)
				return agent.Scripted{Outcome: agent.Done}, nil
			}
			task := r.repoTask("a")
			c.change(r, &task)
			r.worker(r.disk(t.TempDir()), publishing, func(c *Config) {
				c.Exposed = func(string) map[string]string { return map[string]string{"TOKEN": "npm_secret-1"} }
			})
			e := r.ending(r.submit(task))
			if has := r.agent.specs()[0].Secrets["TOKEN"] != ""; e.Kind != tasks.Answered || has != c.want {
				t.Errorf("the agent has the secret: %v, ending = %+v", has, e)
			}
			if c.leaks != "" {
				if e.Published == nil || !strings.Contains(e.Published.Problem, "the secret TOKEN is in a commit") ||
					r.pushed("fake/a") != "" || len(checks) > 0 {
					t.Errorf("pushed %q, ending = %+v", r.pushed("fake/a"), e)
				}
			} else if task.Profile == agent.Write &&
				(len(checks) != 1 || (checks[0].Secrets["TOKEN"] != "") != c.want || checks[0].Env["A"] != "x") {
				t.Errorf("the checks have %+v", checks)
			}
		})
	}
}

// What only a fork has is not executed, whatever a request calls it.
func TestCommitOfAForkIsNotExecuted(t *testing.T) {
	t.Parallel()
	r, _, publishing := publishingFleet(t, func(*remote, agent.Spec) {})
	r.worker(r.disk(t.TempDir()), publishing)
	bare := r.bare()
	commit := r.git(bare, "-c", "user.name=Eve", "-c", "user.email=eve@example.com", "commit-tree", "-p", "main", "-m",
		"from a fork", "main^{tree}")
	r.git(bare, "update-ref", "refs/pull/1/head", commit)
	for i, ref := range []string{"x-0-g" + commit, "x-g" + commit, commit} {
		task := r.repoTask(fmt.Sprint(i))
		task.Ref = ref
		if e := r.ending(r.submit(task)); e.Kind != tasks.Refused || !strings.Contains(e.Reason, commit) {
			t.Errorf("%s: ending = %+v", ref, e)
		}
	}
	if ran := r.agent.specs(); len(ran) > 0 {
		t.Errorf("%d runs", len(ran))
	}
}

// The clone of a conversation may keep the code of a commit that somebody has named, so its later runs get no secrets
// either, at any worker; those of other conversations do.
func TestSecretsAfterACommit(t *testing.T) {
	t.Parallel()
	r, _, publishing := publishingFleet(t, func(r *remote, s agent.Spec) { r.write(s.Dir, "work", s.ID+"\n") })
	exposed := func(c *Config) {
		c.Exposed = func(string) map[string]string { return map[string]string{"TOKEN": "npm_secret-1"} }
	}
	stop := r.worker(r.disk(t.TempDir()), publishing, exposed)
	named, later, other := r.repoTask("a"), r.repoTask("a"), r.repoTask("b")
	named.Ref, later.Ref = r.git(r.bare(), "rev-parse", "main"), "main"
	r.ending(r.submit(named))
	r.ending(r.submit(later))
	stop()
	r.worker(r.disk(t.TempDir()), publishing, exposed)
	r.ending(r.submit(r.repoTask("a")))
	r.ending(r.submit(other))
	for i, want := range []bool{false, false, false, true} {
		if has := r.agent.specs()[i].Secrets["TOKEN"] != ""; has != want {
			t.Errorf("run %d has the secret: %v", i+1, has)
		}
	}
}

// A run that gets no secrets itself, because it only reads, may leave the code of a commit in the clone, too.
func TestSecretsAfterACommitWasRead(t *testing.T) {
	t.Parallel()
	r, _, publishing := publishingFleet(t, func(r *remote, s agent.Spec) { r.write(s.Dir, "work", s.ID+"\n") })
	r.worker(r.disk(t.TempDir()), publishing, func(c *Config) {
		c.Exposed = func(string) map[string]string { return map[string]string{"TOKEN": "npm_secret-1"} }
	})
	named, later := r.repoTask("a"), r.repoTask("a")
	named.Ref, later.Ref = r.git(r.bare(), "rev-parse", "main"), "main"
	named.Profile = agent.Read
	r.ending(r.submit(named))
	r.ending(r.submit(later))
	if r.agent.specs()[1].Secrets["TOKEN"] != "" {
		t.Error("the later run has the secret")
	}
}

// After a rebuild the next run sets up a new environment. A run that uses the old one goes on; then the janitor removes
// it.
func TestRebuild(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "setup: [npm ci]\n")
	var scripts []agent.Script
	r.agent.script = leaves(&scripts, agent.Scripted{Outcome: agent.Done, Duration: 41 * time.Second})
	begun, goOn := make(chan struct{}), make(chan struct{})
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if len(scripts) == 1 {
			close(begun)
			<-goOn
		}
		return answer("done"), nil
	}
	disk := r.disk(t.TempDir())
	config := func(c *Config) { disk(c); c.LogDir = t.TempDir() }
	r.worker(config)
	first := r.submit(r.repoTask("a"))
	<-begun
	done, err := desk.FleetOf(r.desk).Rebuild(operator(t), "acme/api")
	if err != nil || done.By != "Ada" {
		t.Fatalf("%+v, %v", done, err)
	}
	if e := r.ending(r.submit(r.repoTask("b"))); e.Kind != tasks.Answered || len(scripts) != 2 {
		t.Fatalf("ending = %+v after %d set-ups", e, len(scripts))
	}
	if e := r.ending(r.submit(r.repoTask("c"))); e.Kind != tasks.Answered || len(scripts) != 2 {
		t.Fatalf("ending = %+v after %d set-ups", e, len(scripts))
	}
	w := r.idle(config)
	w.janitor.tidy(t.Context())
	kept, err := workspace.EnvironmentsOf(w.cfg.Workspace).List()
	if err != nil || len(kept) != 2 {
		t.Fatalf("%+v, %v", kept, err)
	}
	kept = slices.DeleteFunc(kept, func(e workspace.Environment) bool { return done.Outdated(e.ID) })
	if len(kept) != 1 || kept[0].Repo != "acme/api" || kept[0].Took <= 0 {
		t.Fatalf("new environments: %+v", kept)
	}
	close(goOn)
	if e := r.ending(first); e.Kind != tasks.Answered {
		t.Errorf("the run that was running: %+v", e)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		w.janitor.tidy(t.Context())
		left, err := workspace.EnvironmentsOf(w.cfg.Workspace).List()
		if err != nil || len(left) == 0 {
			t.Fatalf("the new environment is gone: %v", err)
		}
		if len(left) == 1 {
			if left[0].ID != kept[0].ID {
				t.Errorf("%+v is left", left)
			}
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the old environment stays")
		}
	}
}

// The base of a pull request may be a branch that nobody protects. Its runs get the set-up, and the instructions and the
// configuration, of the branch that people protect, and their followers hear it.
func TestSetUpOfAnotherBase(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	for _, branch := range []string{"main", "other"} {
		r.declare(branch, "setup: [make "+branch+"]\nenv: {A: "+branch+"}\n")
	}
	var scripts []agent.Script
	r.agent.do, r.agent.script = nil, leaves(&scripts, agent.Scripted{Outcome: agent.Done})
	r.source.brief = func(t tasks.Task) (tasks.Brief, error) { return tasks.Brief{Base: t.Prompt}, nil }
	r.worker(r.disk(t.TempDir()), func(c *Config) {
		c.Secrets = func(string) map[string]string { return map[string]string{"TOKEN": "npm_secret-1"} }
	})
	for i, base := range []string{"other", "main"} {
		task := r.repoTask(base)
		task.Prompt = base
		id := r.submit(task)
		if e := r.ending(id); e.Kind != tasks.Answered {
			t.Fatalf("ending = %+v", e)
		}
		if len(scripts) != 1 || !strings.Contains(scripts[0].Line, "make main") ||
			scripts[0].Env["TOKEN"] != "npm_secret-1" {
			t.Fatalf("with base %s the set-up is %+v", base, scripts)
		}
		if got := r.agent.specs()[i].Env["A"]; got != "main" {
			t.Errorf("with base %s the agent has the environment of %s", base, got)
		}
		said := strings.Join(r.events(id, agent.Notice), "\n")
		if got := strings.Contains(said, "The base is other. Instructions, settings and set-up are those of main"); got !=
			(base == "other") {
			t.Errorf("with base %s followers see %s", base, said)
		}
	}
}
