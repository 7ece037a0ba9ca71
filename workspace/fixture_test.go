package workspace

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"
)

// testGit runs git as a developer or an agent would, without any of this package's precautions, and returns its
// trimmed output.
func testGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(t, dir, args...)
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

func tryGit(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_TEMPLATE_DIR=",                                                                   // no samples of hooks
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false", // two processes for a commit
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// patience ends only what hangs: a loaded machine may take minutes for a step that takes a moment.
const patience = 20 * time.Minute

// origin is the remote repository acme/api, and a person's checkout of it.
type origin struct {
	t    *testing.T
	root string // holds acme/api.git
	bare string
	work string
}

// seed is what newOrigin copies: to make it takes a dozen processes.
var seed struct {
	sync.Once
	bare, work fstest.MapFS
}

// newOrigin has one commit with README.md on main.
func newOrigin(t *testing.T) *origin {
	t.Helper()
	root := t.TempDir()
	o := &origin{t: t, root: root, bare: filepath.Join(root, "acme", "api.git"), work: t.TempDir()}
	seed.Do(func() {
		testGit(t, root, "init", "--quiet", "--bare", "--initial-branch=main", "seed.git")
		testGit(t, root+"/seed.git", "config", "receive.autogc", "false") // two processes for a push
		testGit(t, root, "init", "--quiet", "--initial-branch=main", "seed")
		testGit(t, root+"/seed", "remote", "add", "origin", "../seed.git")
		(&origin{t: t, work: root + "/seed"}).commit("main", map[string]string{"README.md": "one\n"})
		seed.bare, seed.work = held(t, root+"/seed.git"), held(t, root+"/seed")
		write(t, root+"/seed", "")
		write(t, root+"/seed.git", "")
	})
	for dir, files := range map[string]fs.FS{o.bare: seed.bare, o.work: seed.work} {
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
	}
	config := strings.Replace(string(seed.work[".git/config"].Data), "../seed.git", o.bare, 1)
	if err := os.WriteFile(o.work+"/.git/config", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// held is a directory in memory.
func held(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		file := &fstest.MapFile{Mode: info.Mode()}
		if !d.IsDir() {
			file.Data, err = os.ReadFile(filepath.Join(dir, name))
		}
		files[name] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// commit commits files to a branch (a new one starts at HEAD), pushes it and returns the SHA. Empty
// content removes a file, content "-> x" is a link to x.
func (o *origin) commit(branch string, files map[string]string) string {
	o.t.Helper()
	if _, err := tryGit(o.t, o.work, "checkout", "--quiet", branch); err != nil {
		testGit(o.t, o.work, "checkout", "--quiet", "-b", branch)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) { // Remove a file before creating a directory in its place.
		write(o.t, filepath.Join(o.work, name), files[name])
	}
	testGit(o.t, o.work, "add", "--all")
	testGit(o.t, o.work, "commit", "--quiet", "--allow-empty", "--message", "change "+branch)
	return o.push("HEAD:refs/heads/" + branch)
}

func (o *origin) push(refspec string) string {
	o.t.Helper()
	testGit(o.t, o.work, "push", "--quiet", "--force", "origin", refspec)
	return testGit(o.t, o.work, "rev-parse", "HEAD")
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
	if content == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	err := error(nil)
	if target, link := strings.CutPrefix(content, "-> "); link {
		err = os.Symlink(target, name)
	} else {
		err = os.WriteFile(name, []byte(content), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// files opens a workspace that reads o by path.
func (o *origin) files() *Workspace {
	o.t.Helper()
	return open(o.t, Config{Dir: o.t.TempDir(), URL: func(repo string) string {
		return filepath.Join(o.root, repo+".git")
	}})
}

func open(t *testing.T, cfg Config) *Workspace {
	t.Helper()
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// server is a git host: smart HTTP by git's own backend.
type server struct {
	*httptest.Server
	hits atomic.Int64
}

// rules of a server, constant while it runs.
type rules struct {
	password string                    // of x-access-token, required if set
	fetching func(ctx context.Context) // called before objects are sent
	failures *atomic.Int64             // remaining replies with status 500
}

func (o *origin) serve(rules rules) *server {
	o.t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		o.t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: path, Args: []string{"http-backend"}, Dir: o.root, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + o.root, "GIT_HTTP_EXPORT_ALL=1", "HOME=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
	}
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		if u, p, _ := r.BasicAuth(); rules.password != "" && (u != "x-access-token" || p != rules.password) {
			rw.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(rw, "no", http.StatusUnauthorized)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		fetch := bytes.Contains(body, []byte("command=fetch"))
		if fetch && rules.fetching != nil {
			rules.fetching(r.Context())
		}
		if fetch && rules.failures != nil && rules.failures.Add(-1) >= 0 {
			http.Error(rw, "later", http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		backend.ServeHTTP(rw, r)
	}))
	o.t.Cleanup(s.Close)
	return s
}

func (s *server) repo(repo string) string { return s.URL + "/" + repo + ".git" }

// api is the Want of most tests.
var api = Want{Thread: "slack/T1/C1/1.2", Repo: "acme/api"}

func checkout(t *testing.T, w *Workspace, want Want) Clone {
	t.Helper()
	c, err := w.Checkout(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// snapshot is every file below dir with its content; links with their target.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			files[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// workTree is the snapshot without .git.
func workTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := snapshot(t, dir)
	for name := range files {
		if strings.HasPrefix(name, ".git/") {
			delete(files, name)
		}
	}
	return files
}

// leftovers lists what should not be beside a clone.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	left, err := fs.Glob(os.DirFS(filepath.Dir(dir)), ".*") // none without a directory
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(left, func(name string) bool { return name == "."+filepath.Base(dir)+"~index" })
}

// fifo makes a pipe, and its directory.
func fifo(t *testing.T, name string) {
	t.Helper()
	write(t, name, "x")
	write(t, name, "")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
}

// redirect starts a server that redirects to another, and returns its URL.
func redirect(t *testing.T, to string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, to+r.URL.RequestURI(), http.StatusFound)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
