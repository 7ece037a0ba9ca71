package worker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// remote is a fleet whose workers each have their own disk and clone from a repository "acme/api".
type remote struct {
	*fleet
	root    string
	started chan agent.Spec // a run has done what work writes
	work    func(s agent.Spec)
	save    bool // and has called Spec.Checkpoint
	stuck   int  // processes that outlive the run
}

func newRemote(t *testing.T) *remote {
	t.Helper()
	r := &remote{fleet: newFleet(t), root: t.TempDir(), started: make(chan agent.Spec, 10)}
	r.git(r.root, "init", "--quiet", "--bare", "--initial-branch=main", r.bare())
	r.push("refs/heads/main", map[string]string{"README.md": "one\n", ".gitignore": "*.log\n"})
	r.work = r.everything
	r.agent.do = r.run
	return r
}

// bare is the directory of acme/api.
func (r *remote) bare() string { return filepath.Join(r.root, "acme", "api.git") }

// push commits files to a ref of acme/api, which begins at main if it is new, and returns the commit. A file that is
// "commit" and an ID is a submodule.
func (r *remote) push(ref string, files map[string]string) (commit string) {
	r.Helper()
	text := "commit " + ref + "\ncommitter Ann <a@example.com> now\ndata 1\nx\n"
	for _, from := range []string{ref, "refs/heads/main"} {
		if _, err := os.Stat(filepath.Join(r.bare(), from)); err == nil {
			text += "from " + from + "^0\n"
			break
		}
	}
	for name, content := range files {
		if id, ok := strings.CutPrefix(content, "commit "); ok {
			text += "M 160000 " + id + " " + name + "\n"
		} else {
			text += fmt.Sprintf("M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
		}
	}
	r.gitReading(text, r.bare(), "fast-import", "--quiet", "--date-format=now")
	return r.git(r.bare(), "rev-parse", ref)
}

func (r *remote) git(dir string, args ...string) string {
	r.Helper()
	return r.gitReading("", dir, args...)
}

// gitReading runs git with an input.
func (r *remote) gitReading(input, dir string, args ...string) string {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ann",
		"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *remote) write(dir, name, content string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
}

// disk is the machine of one worker.
func (r *remote) disk(dir string) func(*Config) {
	return func(c *Config) {
		var err error
		c.Workspace, err = workspace.New(workspace.Config{Dir: dir, URL: func(repo string) string {
			return filepath.Join(r.root, repo+".git")
		}})
		if err != nil {
			r.Fatal(err)
		}
		c.Timing.Pack, c.Timing.Shutdown = time.Minute, 2*time.Minute // a machine may be busy
	}
}

// everything is what an agent may leave in its clone.
func (r *remote) everything(s agent.Spec) {
	r.write(s.Dir, "committed.txt", "committed\n")
	r.git(s.Dir, "add", "committed.txt")
	r.git(s.Dir, "commit", "--quiet", "--message", "work")
	r.write(s.Dir, "README.md", "changed\n")
	r.write(s.Dir, "untracked.txt", "untracked\n")
	r.write(s.Dir, "ignored.log", "ignored\n")
}

// run works until it is stopped the first time; the run that resumes it answers immediately.
func (r *remote) run(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
	if len(r.agent.specs()) > 1 {
		return answer("done"), nil
	}
	r.work(s)
	res := answer("")
	res.Outcome, res.Session.Data, res.Resources.Stuck = agent.Stopped, []byte("so far "), r.stuck
	if r.save {
		saved := res.Session
		saved.Data = append(saved.Data, line(s.Prompt.ID)...)
		s.Checkpoint(ctx, saved)
		r.write(s.Dir, "later.txt", "after the checkpoint\n")
	}
	r.started <- s
	<-ctx.Done()
	return res, nil
}

func (r *remote) repoTask(thread string) tasks.Task {
	t := r.task(thread, "do it")
	t.Repo, t.Profile = "acme/api", agent.Write
	return t
}

// resumed returns the spec of the last run after its task has ended.
func (r *remote) resumed(id string) agent.Spec {
	r.Helper()
	if e := r.ending(id); e.Kind != tasks.Answered {
		r.Fatalf("ending = %+v", e)
	}
	specs := r.agent.specs()
	return specs[len(specs)-1]
}

// files returns the files of a work tree.
func (r *remote) files(dir string) map[string]string {
	r.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			files[e.Name()] = string(text)
		}
	}
	return files
}

var everything = map[string]string{
	".gitignore": "*.log\n", "README.md": "changed\n", "committed.txt": "committed\n", "untracked.txt": "untracked\n",
}
