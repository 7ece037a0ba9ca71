package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/refname"
	"github.com/errand-fleet/errand/internal/transcript"
)

func takeCommand(t *terminal) *cobra.Command {
	return t.aboutTask(&cobra.Command{
		Use: "take ID", Short: "Stop a task and continue it in this clone",
		Annotations: map[string]string{"json": "the API's JSON, and change nothing here"},
	}, t.take)
}

// taken is the response of POST /api/tasks/{id}/take.
type taken struct {
	Session string
	Data    []byte
	Works   []struct{ Repo, Branch string }
}

// take finds out whether the clone is fit before it stops the task.
func (t *terminal) take(ctx context.Context, id string, _ []string) error {
	var about task
	if _, err := t.api.call(ctx, "GET /api/tasks/"+id, nil, &about); err != nil {
		return err
	}
	c, err := t.openClone(ctx, append([]string{about.Task.Repo}, about.Task.Also...))
	if err != nil {
		return err
	}
	response, err := t.api.open(ctx, "POST /api/tasks/"+id+"/take", nil) // it may take a minute
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var v taken
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return fmt.Errorf("read response of %s: %w: is this errand?", t.api.base, err)
	}
	if t.raw {
		return t.printJSON(text)
	}
	for _, w := range v.Works {
		if strings.EqualFold(w.Repo, c.repo) {
			err = c.checkOut(ctx, w.Branch)
		} else if w.Branch != "" {
			printf(t.stderr, "There is also work on branch %s of %s.\n", display.Line(w.Branch), display.Line(w.Repo))
		}
		if err != nil {
			return fmt.Errorf("%w. The task is stopped: correct that, and take it over again", err)
		}
	}
	return t.placeSession(v, c.dir)
}

// placeSession puts the conversation where the CLI finds it in dir, and prints the command that continues it.
func (t *terminal) placeSession(v taken, dir string) error {
	if v.Session == "" {
		printf(t.stderr, "The conversation is no longer stored. Its work is in %s.\n", display.Line(dir))
		return nil
	}
	a, err := transcript.Unpack(v.Data)
	if err != nil || !sessionID.MatchString(v.Session) {
		return errors.Join(errors.New("the front door sent no conversation"), err)
	}
	home := cmp.Or(t.getenv("HOME"), t.getenv("USERPROFILE"))
	config := cmp.Or(t.getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude"))
	err = a.Place(config, config, v.Session, dir)
	if errors.Is(err, fs.ErrExist) {
		printf(t.stderr, "The conversation was here before, and stays as it is.\n")
	} else if err != nil {
		return fmt.Errorf("save the conversation: %w", err)
	}
	printf(t.stdout, "cd '%s' && claude --resume %s\n", strings.ReplaceAll(display.Line(dir), "'", `'\''`), v.Session)
	return nil
}

var sessionID = regexp.MustCompile(`^[0-9A-Fa-f-]{36}$`)

// clone is a clone of one of a task's repositories.
type clone struct{ dir, repo, remote string }

// openClone returns the clone that the command runs in. It must be of one of the repositories and hold no changes.
func (t *terminal) openClone(ctx context.Context, repos []string) (c clone, err error) {
	c.dir = t.dir
	if c.dir, err = c.git(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return c, fmt.Errorf("run this in a clone of %s: %w", display.Line(strings.Join(repos, " or ")), err)
	}
	remotes, err := c.git(ctx, "remote")
	if err != nil {
		return c, err
	}
	for name := range strings.Lines(remotes) {
		name = strings.TrimSpace(name)
		url, err := c.git(ctx, "remote", "get-url", name)
		if err != nil {
			return c, err
		}
		for _, repo := range repos {
			if c.repo == "" && repo != "" && isAt(url, repo) {
				c.repo, c.remote = repo, name
			}
		}
	}
	if c.repo == "" {
		return c, fmt.Errorf("no remote of %s is %s: run this in a clone of it", display.Line(c.dir),
			display.Line(strings.Join(repos, " or ")))
	}
	changed, err := c.git(ctx, "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("%s has changes: commit or stash them first", display.Line(c.dir))
	}
	return c, err
}

// isAt reports whether a URL is that of a repository, such as git@github.com:acme/api.git that of acme/api.
func isAt(url, repo string) bool {
	url = strings.ToLower(strings.TrimSuffix(strings.TrimRight(url, "/"), ".git"))
	repo = strings.ToLower(repo)
	return strings.HasSuffix(url, "/"+repo) || strings.HasSuffix(url, ":"+repo)
}

// checkOut checks out the remote's branch. It never moves a branch of the clone away from commits of its own.
func (c clone) checkOut(ctx context.Context, branch string) error {
	if branch == "" {
		return nil
	}
	if !refname.Branch(branch) {
		return fmt.Errorf("%q is not a branch", branch)
	}
	tracking := "refs/remotes/" + c.remote + "/" + branch
	if _, err := c.git(ctx, "fetch", "--quiet", c.remote, "+refs/heads/"+branch+":"+tracking); err != nil {
		return err
	}
	if _, err := c.git(ctx, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch); err != nil {
		_, err = c.git(ctx, "switch", "--quiet", "--create", branch, tracking)
		return err
	}
	if _, err := c.git(ctx, "switch", "--quiet", branch); err != nil {
		return err
	}
	_, err := c.git(ctx, "merge", "--quiet", "--ff-only", tracking)
	return err
}

// git runs git in the clone, and returns what it prints.
func (c clone) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.dir
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, display.Line(strings.TrimSpace(problem.String())))
	}
	return strings.TrimRight(string(out), "\r\n"), nil
}
