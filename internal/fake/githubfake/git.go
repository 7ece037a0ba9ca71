package githubfake

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// noCommit is how git and GitHub write "there was none".
const noCommit = "0000000000000000000000000000000000000000"

// gitEnv is all git may know of the machine: no system or user configuration,
// no prompt, one fixed identity.
func (s *Server) gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home(), "XDG_CONFIG_HOME=" + s.home(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Octo Cat", "GIT_AUTHOR_EMAIL=octocat@example.com",
		"GIT_COMMITTER_NAME=Octo Cat", "GIT_COMMITTER_EMAIL=octocat@example.com",
	}
}

// git runs one git command in a repository and returns its output as it is.
// It needs no lock.
func (s *Server) git(dir, stdin string, args ...string) (string, error) {
	return s.gitContext(s.ctx, dir, stdin, args...)
}

func (s *Server) gitContext(ctx context.Context, dir, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, s.gitEnv()
	cmd.Stdin = strings.NewReader(stdin)
	// A killed git may leave a child (fetch has one) holding the pipes; Close
	// must not wait for it.
	cmd.WaitDelay = time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(problems.Bytes()))
	}
	return out.String(), nil
}

func (s *Server) findBackend() error {
	out, err := s.git(s.cfg.Dir, "", "--exec-path")
	if err != nil {
		return fmt.Errorf("find git: %w", err)
	}
	s.backend = filepath.Join(strings.TrimSpace(out), "git-http-backend")
	if _, err := os.Stat(s.backend); err != nil {
		return fmt.Errorf("find git http-backend: %w", err)
	}
	return nil
}

// initBare makes an empty bare repository that behaves as one on GitHub.
func (s *Server) initBare(dir string) error {
	if _, err := s.git(s.cfg.Dir, "", "init", "--quiet", "--bare", "--template=", "--initial-branch=main",
		dir); err != nil {
		return err
	}
	config := strings.Join([]string{
		"[http]", "receivepack = true", "getanyfile = false",
		// What our mirrors use: partial clones, and fetching a head by its sha.
		"[uploadpack]", "allowFilter = true", "allowAnySHA1InWant = true",
		// Pull request refs are read-only, and nothing may run behind our back.
		"[receive]", "hideRefs = refs/pull", "autogc = false", "denyDeleteCurrent = ignore",
		"[gc]", "auto = 0", "[maintenance]", "auto = false", "",
	}, "\n")
	f, err := os.OpenFile(filepath.Join(dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(config)
	return err
}

// branches maps the branches of a repository to their commits.
func (s *Server) branches(dir string) (map[string]string, error) {
	out, err := s.git(dir, "", "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = sha
	}
	return all, nil
}

// resolve is the commit a branch or sha names, or "".
func (s *Server) resolve(dir, ref string) string {
	// A branch named like an abbreviated sha is still the branch.
	for _, name := range []string{"refs/heads/" + ref, ref} {
		out, err := s.git(dir, "", "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
		if err == nil {
			return strings.TrimSpace(out)
		}
	}
	return ""
}
