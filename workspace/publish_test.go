package workspace

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/await"
)

const ownBranch = "errand/slack-1a2b3c4d5e"

// publication is the request of most tests. Permitted commits are ours from then on, as in the fleet's store.
func publication() *Publication {
	p := &Publication{Branch: ownBranch, Message: "Fix the total\n\nErrand-Run: 1-slack-x\n"}
	p.Permit = func(_ context.Context, commit string) error {
		p.Ours = append(p.Ours, commit)
		return nil
	}
	return p
}

func published(t *testing.T, w *Workspace, c Clone, p *Publication) Pushed {
	t.Helper()
	pushed, err := w.Publish(t.Context(), c, *p)
	if err != nil {
		t.Fatal(err)
	}
	return pushed
}

// branch returns the files and log of a remote branch.
func (o *origin) branch(name string) (files map[string]string, log string) {
	o.t.Helper()
	dir := o.t.TempDir()
	testGit(o.t, dir, "clone", "--quiet", "--branch", name, o.bare, "work")
	return workTree(o.t, dir+"/work"), testGit(o.t, dir+"/work", "log", "--format=%s|%an|%cn", "origin/main..")
}

func (o *origin) sha(ref string) string {
	out, err := tryGit(o.t, o.bare, "rev-parse", "--verify", "--quiet", ref)
	if err != nil {
		return ""
	}
	return out
}

// A file may change right after git has written the index, and keep its size: then its times say nothing. Many builds of
// git compare seconds.
func TestChangeInTheMomentOfTheIndex(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{"total.txt": "one\n", "gone.txt": "x\n"})
	w := o.files()
	c := checkout(t, w, api)
	index, file := c.Dir+"/.git/index", c.Dir+"/total.txt"
	before := testGit(t, c.Dir, "rev-parse", "HEAD:total.txt")
	write(t, file, "two\n")
	testGit(t, c.Dir, "add", file)
	after := testGit(t, c.Dir, "rev-parse", ":total.txt")
	entries, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	id := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err := os.WriteFile(index, bytes.ReplaceAll(entries, id(after), id(before)), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(index, info.ModTime(), info.ModTime()), os.Remove(c.Dir+"/gone.txt")); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the next second", func() bool { return time.Now().Unix() > info.ModTime().Unix() })
	b, err := w.Snapshot(t.Context(), c, bundleLimit)
	if err != nil {
		t.Fatal(err)
	}
	if got := workTree(t, o.restored(o.files(), b).Dir)["total.txt"]; got != "two\n" {
		t.Errorf("the snapshot has %q", got)
	}
	published(t, w, c, publication())
	want := map[string]string{"README.md": "one\n", "total.txt": "two\n"}
	if files, _ := o.branch(ownBranch); !maps.Equal(files, want) {
		t.Errorf("published %q", files)
	}
}

func TestPublish(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".gitignore": "*.log\n", "gone.txt": "x\n", "dir/file.txt": "x\n", ".gitattributes": "*.dos text eol=crlf\n",
		"other.dos": "a\nb\n", "ends.dos": "a\nb\n", "old/er/file.txt": "x\n", "turns": "x\n", "was-link": "-> /etc",
	})
	w := o.files()
	c := checkout(t, w, api)
	o.workIn(c.Dir)
	want := workTree(t, c.Dir)
	delete(want, "ignored.log")
	delete(want, "mixed.dos") // its line ends are converted
	p := publication()
	pushed := published(t, w, c, p)
	files, log := o.branch(ownBranch)
	delete(files, "mixed.dos")
	want["other.dos"], want["ends.dos"] = "a\r\nb\r\n", "a\r\nb\r\n"
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
	if log != "Fix the total|errand|errand\nmore|Ann|Ann" || pushed.Subject != "more" || !pushed.New ||
		pushed.Commit != o.sha(ownBranch) {
		t.Errorf("log:\n%s\n%+v", log, pushed)
	}
	if got := testGit(t, o.bare, "cat-file", "blob", ownBranch+":mixed.dos"); strings.Contains(got, "\r") {
		t.Errorf("line ends are %q", got)
	}
	if got := testGit(t, o.bare, "log", "-1",
		"--format=%(trailers:key=Errand-Run,valueonly)", ownBranch); got != "1-slack-x" {
		t.Errorf("the trailer is %q", got)
	}
	// The clone is at that commit, and nothing is uncommitted.
	if got := testGit(t, c.Dir, "status", "--porcelain"); got != "" ||
		testGit(t, c.Dir, "rev-parse", "main") != pushed.Commit {
		t.Errorf("status:\n%s", got)
	}
	// Again: there is nothing new.
	again := published(t, w, c, p)
	if again != (Pushed{Commit: pushed.Commit, Subject: "more"}) || len(p.Ours) != 1 {
		t.Errorf("again: %+v, permitted %q", again, p.Ours)
	}
	// More work goes on top.
	write(t, c.Dir+"/README.md", "two\n")
	if next := published(t, w, c, p); !next.New || testGit(t, o.bare, "rev-parse", ownBranch+"^") != pushed.Commit {
		t.Errorf("next: %+v", next)
	}
}

// A thread continues from its published branch on a new machine.
func TestPublishedWorkGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	here, there := o.files(), o.files()
	p := publication()
	c := checkout(t, here, api)
	write(t, c.Dir+"/new.txt", "new\n")
	first := published(t, here, c, p)
	want := api
	want.Own, want.Keep = ownBranch, true
	c = checkout(t, there, want)
	if c.Head != first.Commit || c.Published != ownBranch || !c.Fresh ||
		testGit(t, c.Dir, "symbolic-ref", "HEAD") != "refs/heads/"+ownBranch {
		t.Fatalf("began at %+v", c)
	}
	write(t, c.Dir+"/README.md", "two\n")
	p.Ours = nil // not recorded: it still builds on the existing branch
	published(t, there, c, p)
	files, log := o.branch(ownBranch)
	if diff := cmp.Diff(map[string]string{"README.md": "two\n", "new.txt": "new\n"}, files); diff != "" ||
		strings.Count(log, "\n") != 1 {
		t.Errorf("branch (-want +got):\n%s%s", diff, log)
	}
	// Without that branch it begins at Ref, even if there is one that errand could not push to.
	testGit(t, o.bare, "branch", "Feature/none", ownBranch)
	want.Own, want.Thread = "errand/none", "other"
	if c := checkout(t, there, want); c.Head != o.sha("main") || c.Published != "" {
		t.Errorf("began at %+v", c)
	}
}

func TestNothingToPublish(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("side", map[string]string{"side.txt": "x\n"})
	testGit(t, o.work, "commit", "--quiet", "--allow-empty", "--message", "pull")
	o.push("HEAD:refs/pull/7/head")
	for name, ref := range map[string]string{"base": "", "branch": "side", "pull request": "refs/pull/7/head"} {
		w := o.files()
		want := api
		want.Ref = ref
		c := checkout(t, w, want)
		write(t, c.Dir+"/README.md", "two\n")
		write(t, c.Dir+"/README.md", "one\n") // only its time differs
		if got := published(t, w, c, publication()); got != (Pushed{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if o.sha(ownBranch) != "" {
		t.Error("a branch was pushed")
	}
	// That needs no request.
	w := o.files()
	c := checkout(t, w, api)
	calls := spy(t, w)
	published(t, w, c, publication())
	for _, call := range calls() {
		if strings.Contains(strings.Join(call.Args, " "), o.bare) {
			t.Errorf("the remote was asked: %q", call.Args)
		}
	}
	// One of our branches without changes should not be published.
	p := publication()
	write(t, c.Dir+"/new.txt", "new\n")
	first := published(t, w, c, p)
	testGit(t, c.Dir, "reset", "--quiet", "--hard", "origin/main")
	if got := published(t, w, c, p); got != (Pushed{}) || o.sha(ownBranch) != first.Commit {
		t.Errorf("after a reset: %+v", got)
	}
}

// Our own commits should be replaced, those of others should not.
func TestPublishReplacesOnlyOurs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, p := o.files(), publication()
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	published(t, w, c, p)
	testGit(t, c.Dir, "commit", "--quiet", "--amend", "--message", "better words")
	amended := published(t, w, c, p)
	if amended.Subject != "better words" || o.sha(ownBranch) != amended.Commit {
		t.Fatalf("amended: %+v", amended)
	}

	testGit(t, o.work, "fetch", "--quiet", "origin")
	testGit(t, o.work, "checkout", "--quiet", "-b", "theirs", "origin/"+ownBranch)
	write(t, o.work+"/theirs.txt", "x\n")
	testGit(t, o.work, "add", "--all")
	testGit(t, o.work, "commit", "--quiet", "--message", "theirs")
	theirs := o.push("HEAD:refs/heads/" + ownBranch)
	// Their commits are on top of all our commits: nothing is left to publish.
	if got := published(t, w, c, p); got.New || got.Commit != amended.Commit {
		t.Errorf("beside theirs: %+v", got)
	}
	write(t, c.Dir+"/README.md", "two\n")
	if _, err := w.Publish(t.Context(), c, *p); !errors.Is(err, ErrForeign) || o.sha(ownBranch) != theirs {
		t.Errorf("over theirs: %v", err)
	}
	if workTree(t, c.Dir)["README.md"] != "two\n" {
		t.Error("the work is gone")
	}
	// Once it contains theirs, it can.
	checkout(t, w, Want{Thread: api.Thread, Repo: api.Repo, Keep: true})
	testGit(t, c.Dir, "stash", "--quiet")
	testGit(t, c.Dir, "merge", "--quiet", "origin/"+ownBranch)
	testGit(t, c.Dir, "stash", "pop", "--quiet")
	published(t, w, c, p)
	files, _ := o.branch(ownBranch)
	if diff := cmp.Diff(map[string]string{
		"README.md": "two\n", "new.txt": "new\n", "theirs.txt": "x\n",
	}, files); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
}

// A concurrent push by another person should not be overwritten either.
func TestPushIsCompared(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, p := o.files(), publication()
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	p.Permit = func(context.Context, string) error {
		o.push("main:refs/heads/" + ownBranch)
		return nil
	}
	if _, err := w.Publish(t.Context(), c, *p); !errors.Is(err, ErrForeign) || o.sha(ownBranch) != o.sha("main") {
		t.Errorf("overwrote another push: %v", err)
	}
}

// Nothing is pushed without permission. A call can be repeated after its push.
func TestPublishAgainAfterACrash(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, p := o.files(), publication()
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	lost := errors.New("the claim is lost")
	permit := p.Permit
	p.Permit = func(context.Context, string) error { return lost }
	if _, err := w.Publish(t.Context(), c, *p); !errors.Is(err, lost) || o.sha(ownBranch) != "" {
		t.Fatalf("without permission: %v", err)
	}
	p.Permit = permit
	head := testGit(t, c.Dir, "rev-parse", "HEAD")
	first := published(t, w, c, p)
	// As if the worker had died before it recorded the push in its clone.
	testGit(t, c.Dir, "reset", "--quiet", head)
	if again := published(t, w, c, p); again.New || again.Commit != first.Commit {
		t.Errorf("again: %+v, first %+v", again, first)
	}
}

// In a clone with trusted configuration, that of the base is in the work tree. It does not get into the branch,
// however it is staged.
func TestTrustedConfigStaysOut(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".mcp.json": "main's\n", ".claude/settings.json": "{}\n"})
	o.commit("side", map[string]string{
		".mcp.json": "side's\n", ".claude/settings.json": "", "sub/.mcp.json": "only side's\n",
	})
	for name, spoil := range map[string]func(dir string){
		"as it is": func(string) {},
		"staged": func(dir string) {
			testGit(t, dir, "update-index", "--no-skip-worktree", ".mcp.json", "sub/.mcp.json")
			write(t, dir+"/.git/info/exclude", "")
			testGit(t, dir, "add", "--all")
		},
		"index removed": func(dir string) { write(t, dir+"/.git/index", "") },
	} {
		w, p := o.files(), publication()
		p.TrustedConfig = true
		want := api
		want.Ref, want.TrustedConfig = "side", true
		c := checkout(t, w, want)
		write(t, c.Dir+"/new.txt", "new\n")
		spoil(c.Dir)
		published(t, w, c, p)
		if got := testGit(t, o.bare, "diff", "--name-only", "side", ownBranch); got != "new.txt" {
			t.Errorf("%s: the branch changes\n%s", name, got)
		}
		if got := testGit(t, c.Dir, "status", "--porcelain"); got != "" ||
			workTree(t, c.Dir)[".mcp.json"] != "main's\n" {
			t.Errorf("%s: afterwards the clone has .mcp.json %q and\n%s", name, workTree(t, c.Dir)[".mcp.json"], got)
		}
		testGit(t, o.bare, "branch", "-D", ownBranch)
	}
}

// A rejection by the remote should be reported in its words, and the work kept.
func TestRefusedPush(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	write(t, o.bare+"/hooks/pre-receive", "#!/bin/sh\necho 'GH013: Repository rule violations found' >&2\nexit 1\n")
	w, p := o.files(), publication()
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	_, err := w.Publish(t.Context(), c, *p)
	const want = "publish acme/api: the remote refused the push: pre-receive hook declined: GH013: Repository rule violations found"
	if !errors.Is(err, ErrRejected) || err.Error() != want {
		t.Errorf("refused: %v", err)
	}
	if got := testGit(t, c.Dir, "status", "--porcelain"); got != "?? new.txt" {
		t.Errorf("status:\n%s", got)
	}
	if err := os.Remove(o.bare + "/hooks/pre-receive"); err != nil {
		t.Fatal(err)
	}
	published(t, w, c, p)
}

// A long refusal is cut between two characters.
func TestLongRefusal(t *testing.T) {
	t.Parallel()
	said := " ! [remote rejected] a -> b (" + strings.Repeat("é", maxRefusal) + ")\n"
	for _, pad := range []string{"", "x"} {
		err := pushError(&gitError{
			command: "push", stderr: strings.Replace(said, "(", "("+pad, 1), err: errors.New("exit status 1"),
		})
		if !errors.Is(err, ErrRejected) || !utf8.ValidString(err.Error()) ||
			len(err.Error()) > len(ErrRejected.Error())+2+maxRefusal {
			t.Errorf("%d bytes: %q", len(err.Error()), err)
		}
	}
}

// No git and no file has the credential.
func TestPublishKeepsTheCredential(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	testGit(t, o.bare, "config", "http.receivepack", "true")
	s := o.serve(rules{password: secret})
	w := open(t, Config{
		Dir: t.TempDir(), URL: s.repo,
		Credential: func(context.Context, string) (string, string, error) { return "x-access-token", secret, nil },
	})
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	calls := spy(t, w)
	trace := t.TempDir() + "/trace"
	w.git.env = append(w.git.env, "GIT_TRACE="+trace)
	published(t, w, c, publication())
	for _, call := range calls() {
		if strings.Contains(strings.Join(append(call.Args, call.Env...), " "), secret) {
			t.Errorf("git %q has the credential", call.Args)
		}
	}
	for name, text := range snapshot(t, w.cfg.Dir) {
		if strings.Contains(text, secret) {
			t.Errorf("in %s", name)
		}
	}
	if lines, err := os.ReadFile(trace); err != nil || !strings.Contains(string(lines), "push") ||
		strings.Contains(string(lines), secret) {
		t.Errorf("in a command line of git's children, or not seen: %v", err)
	}
}

func TestOnlyOwnBranches(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	for _, branch := range []string{
		"", "main", "errand/", "errand/a..b", "errand/x.lock", "errand/../main", "refs/heads/errand/x", "errand/x:main",
	} {
		p := publication()
		p.Branch = branch
		if _, err := w.Publish(t.Context(), c, *p); err == nil || len(p.Ours) > 0 {
			t.Errorf("%q: %v", branch, err)
		}
	}
}

// The title of a second pull request of a thread is that of its own work, also if the first was merged as one commit.
func TestSubjectOfNewWork(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, p := o.files(), publication()
	c := checkout(t, w, api)
	write(t, c.Dir+"/first.txt", "one\n")
	p.Message = "Add the first\n"
	first := published(t, w, c, p)
	o.commit("main", map[string]string{"first.txt": "one\n"}) // squashed
	testGit(t, o.bare, "update-ref", "-d", "refs/heads/"+ownBranch)
	write(t, c.Dir+"/second.txt", "two\n")
	p.Message = "Add the second\n"
	second := published(t, w, c, p)
	if first.Subject != "Add the first" || second.Subject != "Add the second" || !second.New {
		t.Errorf("published %+v, then %+v", first, second)
	}
	if again := published(t, w, c, p); again.Subject != "Add the first" || again.New {
		t.Errorf("published again: %+v", again)
	}
}
