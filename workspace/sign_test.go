package workspace

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	botAuthor = "bot <7+bot@users.noreply.github.com>"
	coAuthor  = "Co-authored-by: Ann <1+ann@users.noreply.github.com>"
)

// newKey makes a key with ssh-keygen.
func newKey(t *testing.T, args ...string) *Signer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	cmd := exec.CommandContext(t.Context(), "ssh-keygen", append([]string{"-q", "-N", "", "-f", file}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signs opens a workspace that signs.
func (o *origin) signs(key *Signer) *Workspace {
	o.t.Helper()
	return open(o.t, Config{Dir: o.t.TempDir(), Signer: key, URL: func(repo string) string {
		return filepath.Join(o.root, repo+".git")
	}})
}

// verifies fails the test unless git verifies all commits of a range of the remote; it returns their subjects.
func (o *origin) verifies(key *Signer, revisions ...string) string {
	o.t.Helper()
	allowed := filepath.Join(o.t.TempDir(), "allowed")
	write(o.t, allowed, "bot@example.com "+key.PublicKey()+"\n")
	for commit := range strings.FieldsSeq(testGit(o.t, o.bare, append([]string{"rev-list"}, revisions...)...)) {
		out, err := tryGit(o.t, o.bare, "-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed,
			"verify-commit", commit)
		if err != nil {
			o.t.Errorf("%s does not verify: %v\n%s",
				testGit(o.t, o.bare, "log", "-1", "--format=%h %s", commit), err, out)
		}
	}
	return strings.ReplaceAll(testGit(o.t, o.bare, append([]string{"log", "--format=%s"}, revisions...)...), "\n", ", ")
}

func signedPublication() *Publication {
	p := publication()
	p.Author, p.Asker = botAuthor, "Ann <ann@example.com>"
	p.Credit = func(message string) string { return strings.TrimSpace(message) + "\n\n" + coAuthor + "\n" }
	return p
}

// Each kind of key signs what git verifies: an agent's commits on a renamed branch, merges, and errand's own commit.
// Everything else of a commit stays, and the next call has nothing to do.
func TestPublishSigned(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"ed25519": {"-t", "ed25519"}, "rsa": {"-t", "rsa", "-b", "2048"}, "ecdsa": {"-t", "ecdsa"},
		"pem": {"-t", "rsa", "-b", "2048", "-m", "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			key := newKey(t, args...)
			w := o.signs(key)
			c := checkout(t, w, api)
			write(t, c.Dir+"/a.txt", "a\n")
			testGit(t, c.Dir, "add", "--all")
			testGit(t, c.Dir, "commit", "--quiet", "--message", "first\n\nBody  \n\n\nErrand-Run: 1")
			testGit(t, c.Dir, "checkout", "--quiet", "-b", "side", "HEAD~1")
			write(t, c.Dir+"/b.txt", "b\n")
			testGit(t, c.Dir, "add", "--all")
			testGit(t, c.Dir, "commit", "--quiet", "--message", "side", "--author="+Unknown)
			testGit(t, c.Dir, "merge", "--quiet", "--message", "join", "main")
			testGit(t, c.Dir, "branch", "--move", "renamed")
			testGit(t, c.Dir, "mv", "a.txt", "c.txt")
			head, tree := testGit(t, c.Dir, "rev-parse", "HEAD"), testGit(t, c.Dir, "rev-parse", "HEAD^{tree}")

			p := signedPublication()
			pushed := published(t, w, c, p)
			if got := o.verifies(key, ownBranch, "^main"); got != "Fix the total, join, first, side" &&
				got != "Fix the total, join, side, first" {
				t.Errorf("pushed %s", got)
			}
			if got := testGit(t, o.bare, "rev-parse", ownBranch+"~1^{tree}"); got != tree {
				t.Errorf("the tree is %s, want %s", got, tree)
			}
			if got := testGit(t, o.bare, "log", "--format=%an <%ae>|%cn <%ce>|%P",
				"--grep=^first", ownBranch); got != "Ann <ann@example.com>|"+botAuthor+"|"+o.sha("main") {
				t.Errorf("first is %s", got)
			}
			if dates := testGit(t, o.bare, "log", "--format=%at %ct", ownBranch, "^main"); strings.Contains(
				dates, "1767225600") {
				t.Errorf("errand has signed dates of the run: %s", dates)
			}
			if got := testGit(t, o.bare, "log", "--format=%an <%ae>", "--grep=^side",
				"--grep=^Fix", ownBranch); got != botAuthor+"\n"+botAuthor {
				t.Errorf("authors: %s", got)
			}
			if got := testGit(t, o.bare, "log", "--format=%B",
				"--grep=^first", ownBranch); got != "first\n\nBody\n\nErrand-Run: 1\n\n"+coAuthor {
				t.Errorf("message: %q", got)
			}
			// The clone has the copies, and nothing that Save would keep.
			if got := testGit(t, c.Dir, "rev-parse", "HEAD"); got != pushed.Commit || got == head ||
				testGit(t, c.Dir, "status", "--porcelain") != "" {
				t.Errorf("the clone is at %s, want %s", got, pushed.Commit)
			}
			testGit(t, c.Dir, "branch", "--quiet", "--delete", "--force", "main")
			if names, err := w.Save(t.Context(), api.Thread, t.TempDir()); err != nil || len(names) > 0 {
				t.Errorf("saved %v, %v", names, err)
			}
			if again := published(t, w, c, p); again.New || again.Commit != pushed.Commit {
				t.Errorf("published again: %+v, want %s", again, pushed.Commit)
			}
		})
	}
}

// A person's commits on the branch, and the base's, stay as they are. A clone that was not moved to the signed commits,
// as after a crash or from an older checkpoint, finds them again, although another person asks.
func TestPublishSignedFollowUp(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ed25519", "ecdsa"} { // only signatures of the first are the same each time
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			key := newKey(t, "-t", kind)
			w := o.signs(key)
			c := checkout(t, w, api)
			for _, name := range []string{"one", "two"} {
				write(t, c.Dir+"/"+name, name)
				testGit(t, c.Dir, "add", "--all")
				testGit(t, c.Dir, "commit", "--quiet", "--message", name)
			} // their author is the first asker
			unsigned := testGit(t, c.Dir, "rev-parse", "HEAD")
			p := signedPublication()
			first := published(t, w, c, p)
			testGit(t, o.work, "fetch", "--quiet", "origin", ownBranch)
			testGit(t, o.work, "checkout", "--quiet", "-b", "theirs", "FETCH_HEAD")
			write(t, o.work+"/human.txt", "mine\n")
			testGit(t, o.work, "add", "--all")
			testGit(t, o.work, "commit", "--quiet", "--message", "by a person")
			human := o.push("HEAD:refs/heads/" + ownBranch)
			base := o.commit("main", map[string]string{"base.txt": "new\n"})

			testGit(t, c.Dir, "reset", "--quiet", "--hard", unsigned)
			own := api
			own.Keep, own.Own = true, ownBranch
			c = checkout(t, w, own)
			testGit(t, c.Dir, "merge", "--quiet", "--message", "follow", "origin/"+ownBranch)
			testGit(t, c.Dir, "merge", "--quiet", "--message", "base", "origin/main")
			write(t, c.Dir+"/three", "three")
			p.Message, p.Asker = "three", ""
			p.Credit = func(message string) string {
				return strings.TrimSpace(message) + "\n\nCo-authored-by: Bob <b@example.com>\n"
			}
			if last := published(t, w, c, p); !last.New || last.Commit != o.sha(ownBranch) {
				t.Errorf("published %+v", last)
			}
			if got := o.verifies(key, ownBranch, "^main", "^"+human); got != "three, base, follow" {
				t.Errorf("pushed %s", got)
			}
			for _, kept := range []string{human, base, first.Commit} {
				if _, err := tryGit(t, o.bare, "merge-base", "--is-ancestor", kept, ownBranch); err != nil {
					t.Errorf("%s was rewritten", kept)
				}
			}
			if got := testGit(t, o.bare, "log", "--format=%s", ownBranch); strings.Count(got, "one") != 1 ||
				strings.Count(got, "two") != 1 {
				t.Errorf("log:\n%s", got)
			}
		})
	}
}

// What an agent can prepare changes nothing: a signature of another key, one of another commit, hooks and
// configuration.
func TestPublishSignedHostile(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	key := newKey(t, "-t", "ed25519")
	w := o.signs(key)
	c := checkout(t, w, api)
	other := filepath.Join(t.TempDir(), "other")
	if out,
		err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", other).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, c.Dir+"/a.txt", "a\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "-c", "gpg.format=ssh", "-c", "user.signingkey="+other, "commit", "--quiet", "-S",
		"--message", "forged")
	testGit(t, c.Dir, "commit", "--quiet", "--allow-empty", "--message", "by another",
		"--author=Linus <linus@example.com>")
	ran := filepath.Join(t.TempDir(), "ran")
	for _, setting := range []string{"gpg.program", "gpg.ssh.program", "core.fsmonitor"} {
		testGit(t, c.Dir, "config", setting, "touch "+ran)
	}
	write(t, c.Dir+"/.git/hooks/post-commit", "#!/bin/sh\ntouch "+ran+"\n")
	p := signedPublication()
	published(t, w, c, p)
	if got := o.verifies(key, ownBranch, "^main"); got != "by another, forged" {
		t.Errorf("pushed %s", got)
	}
	if got := testGit(t, o.bare, "log", "-1", "--format=%an <%ae>", ownBranch); got != botAuthor {
		t.Errorf("the author is %s", got)
	}
	if exists(ran) {
		t.Error("a program of the agent ran")
	}
	// A genuine signature does not fit another commit.
	raw := testGit(t, o.bare, "cat-file", "commit", ownBranch)
	raw = strings.Replace(raw, "by another", "stolen", 1) + "\n"
	write(t, c.Dir+"/.git/raw", raw)
	stolen := testGit(t, c.Dir, "hash-object", "-t", "commit", "-w", ".git/raw")
	testGit(t, c.Dir, "reset", "--quiet", "--hard", stolen)
	published(t, w, c, p)
	if got := o.verifies(key, ownBranch, "^main"); got != "stolen, forged" {
		t.Errorf("pushed %s", got)
	}
	var many strings.Builder
	many.WriteString("commit refs/heads/many\ncommitter a <a@b> 1 +0000\ndata 0\nfrom " + c.Head + "\n\n")
	for range maxSigned {
		many.WriteString("commit refs/heads/many\ncommitter a <a@b> 1 +0000\ndata 0\n\n")
	}
	cmd := exec.CommandContext(t.Context(), "git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = c.Dir, strings.NewReader(many.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testGit(t, c.Dir, "checkout", "--quiet", "many")
	if _, err := w.Publish(t.Context(), c, *p); !errors.Is(err, ErrUnfit) ||
		!strings.Contains(err.Error(), "at most 500 can be signed") {
		t.Errorf("too many commits: %v", err)
	}
}

// The signature confirms only what errand knows: the content, its own name and date, and the asker's name. The message
// in another encoding is not touched.
func TestCommitObject(t *testing.T) {
	t.Parallel()
	raw := "tree 1\nparent 2\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\nencoding latin1\nmergetag object 3\n type commit\n \n x\nHG:extra y\ngpgsig -----BEGIN\n \n y\n -----END\n\nsubject\n\nbody\n"
	c := parseCommit("0", raw)
	if err := c.adopt(Publication{Author: botAuthor, Asker: "A <a@b>", Credit: strings.ToUpper}, "7 +0000"); err != nil {
		t.Fatal(err)
	}
	want := "tree 1\nparent 2\nauthor A <a@b> 7 +0000\ncommitter " + botAuthor +
		" 7 +0000\nencoding latin1\n\nsubject\n\nbody\n"
	if got := c.payload(); got != want || c.signature != "-----BEGIN\n\ny\n-----END" {
		t.Errorf("payload %q, signature %q", got, c.signature)
	}
	for _, more := range []string{"gpgsig x\n", "gpgsig-sha256 x\n"} {
		for _, twice := range []string{
			strings.Replace(raw, "gpgsig", more+"gpgsig", 1),
			strings.Replace(raw, "\n\nsubject", "\n"+more+"\nsubject", 1),
		} {
			if c := parseCommit("0", twice); c.signature != "" || strings.Contains(c.payload(), "gpgsig") {
				t.Errorf("of two signatures %q counts", c.signature)
			}
		}
	}
	if c := parseCommit("0", strings.Replace(raw, "gpgsig", "gpgsig-sha256", 1)); c.signature != "" {
		t.Errorf("%q counts", c.signature)
	}
	for _, headers := range []string{
		"tree 1", "tree 1\nauthor A <a@b> 1 +0000", "tree 1\nauthor A <a@b> soon\ncommitter A <a@b> 1 +0000",
	} {
		if err := parseCommit("0", headers+"\n\nx").adopt(Publication{}, "7 +0000"); !errors.Is(err, ErrUnfit) {
			t.Errorf("%q: %v", headers, err)
		}
	}
}

func TestNewSigner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out,
		err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-N", "hush-hush", "-t", "ed25519", "-f", dir+"/locked").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	locked, err := os.ReadFile(dir + "/locked")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		string(locked): "it has a passphrase", "secret-text": "it is not a private SSH key",
	} {
		_, err := NewSigner([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) ||
			slices.ContainsFunc(strings.Fields(text), func(s string) bool {
				return len(s) > 8 && strings.Contains(err.Error(), s)
			}) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
