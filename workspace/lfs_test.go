package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lfsServer is a server for Git LFS beside a git host. As GitHub, it has the objects on another host, which takes only
// what the answer says and refuses every other credential.
type lfsServer struct {
	*httptest.Server
	objects map[string]string // contents by ID

	mu     sync.Mutex
	href   func(oid string) string // where an object is said to be
	bare   bool                    // the answer has no credential for there
	asked  []string
	served int
	sent   int      // bytes of endless contents
	stray  []string // requests that no client should make
}

const lfsPassword = "pass-of-the-forge"

// serveLFS serves o over HTTP with these contents in Git LFS.
func (o *origin) serveLFS(contents ...string) (*Workspace, *lfsServer) {
	o.t.Helper()
	testGit(o.t, o.bare, "config", "http.receivepack", "true")
	host := o.serve(rules{password: lfsPassword})
	s := &lfsServer{objects: map[string]string{}}
	for _, content := range contents {
		s.objects[fmt.Sprintf("%x", sha256.Sum256([]byte(content)))] = content
	}
	store := httptest.NewServer(http.HandlerFunc(s.object))
	s.href = func(oid string) string { return store.URL + "/o/" + oid }
	s.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/acme/api.git/info/lfs/"):
			s.batch(rw, r)
		case strings.HasPrefix(r.URL.Path, "/own/"):
			s.object(rw, r)
		default:
			host.Config.Handler.ServeHTTP(rw, r)
		}
	}))
	o.t.Cleanup(func() { s.Close(); store.Close() })
	w := open(o.t, Config{
		Dir: o.t.TempDir(), URL: func(repo string) string { return s.URL + "/" + repo + ".git" },
		Credential: func(context.Context, string) (string, string, error) { return "x-access-token", lfsPassword, nil },
	})
	return w, s
}

// batch refuses what GitHub refuses.
func (s *lfsServer) batch(rw http.ResponseWriter, r *http.Request) {
	_, pass, _ := r.BasicAuth()
	var in struct {
		Operation string
		Transfers []string
		Objects   []struct {
			OID  string
			Size int64
		}
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case pass != lfsPassword:
		rw.Header().Set("LFS-Authenticate", `Basic realm="git"`)
		http.Error(rw, `{"message":"Credentials needed"}`, http.StatusUnauthorized)
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/objects/batch"):
		http.Error(rw, `{}`, http.StatusNotFound)
	case r.Header.Get("Accept") != lfsType:
		http.Error(rw, `{}`, http.StatusNotAcceptable)
	case err != nil || in.Operation != "download" || !slices.Contains(in.Transfers, "basic") || len(in.Objects) > 100:
		http.Error(rw, `{"message":"invalid"}`, http.StatusUnprocessableEntity)
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		var all []map[string]any
		for _, o := range in.Objects {
			s.asked = append(s.asked, o.OID)
			one := map[string]any{"oid": o.OID, "size": o.Size}
			if content, found := s.objects[o.OID]; !found || len(content) == 0 && o.Size != 0 {
				one["error"] = map[string]any{"code": 404, "message": "Object does not exist"}
			} else {
				header := map[string]string{"Authorization": "RemoteAuth " + o.OID[:8]}
				if s.bare {
					header = nil
				}
				one["actions"] = map[string]any{"download": map[string]any{"href": s.href(o.OID), "header": header}}
			}
			all = append(all, one)
		}
		rw.Header().Set("Content-Type", lfsType)
		_ = json.NewEncoder(rw).Encode(map[string]any{"transfer": "basic", "objects": all})
	}
}

// object serves the object whose ID is the last part of the path.
func (s *lfsServer) object(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oid := filepath.Base(r.URL.Path)
	if r.Header.Get("Authorization") != "RemoteAuth "+oid[:min(8, len(oid))] {
		s.stray = append(s.stray, r.URL.Path+" "+r.Header.Get("Authorization"))
		http.Error(rw, "no", http.StatusForbidden)
		return
	}
	s.served++
	for n := 1; n > 0; s.sent += n {
		if n, _ = fmt.Fprint(rw, s.objects[oid]); s.objects[oid] != endless {
			return
		}
	}
}

// endless is a content that never ends.
const endless = "0123456789abcdef"

// gitAttributes of repositories with files in Git LFS, as git lfs track writes them.
const gitAttributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"

// Contents in Git LFS are fetched with the forge's credential, once for all clones, and are unchanged for the agent's
// git and for errand's. What is published has pointers.
func TestLFS(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	large := strings.Repeat("\x00large\n", 100_000)
	o.commit("main", map[string]string{
		".gitattributes": gitAttributes, "a.bin": asPointer("a\x00b"), "with 'quotes' $(x).bin": asPointer(large),
		"twice.bin": asPointer("a\x00b"), "whole.bin": "not a pointer\x00\n", "empty.bin": "",
	})
	o.commit("other", map[string]string{"a.bin": asPointer("other"), "README.md": "other\n"})
	w, s := o.serveLFS("a\x00b", large, "other")
	c := checkout(t, w, api)
	files := workTree(t, c.Dir)
	for name, content := range map[string]string{
		"a.bin": "a\x00b", "with 'quotes' $(x).bin": large, "twice.bin": "a\x00b", "whole.bin": "not a pointer\x00\n",
	} {
		if files[name] != content {
			t.Errorf("%s: %.50q", name, files[name])
		}
	}
	clean := func() {
		t.Helper()
		if out := testGit(t, c.Dir, "status", "--porcelain"); out != "" {
			t.Errorf("status: %s", out)
		}
	}
	clean()
	for _, name := range []string{"a.bin", "whole.bin", "README.md"} { // written anew with the same contents
		write(t, filepath.Join(c.Dir, name), files[name])
	}
	clean()
	if len(c.Lacks) > 0 || s.served != 2 || len(s.stray) > 0 {
		t.Errorf("lacks %v, %d served, stray %v", c.Lacks, s.served, s.stray)
	}
	// The agent commits, also what belongs to Git LFS and is unchanged, and leaves something uncommitted.
	write(t, filepath.Join(c.Dir, "new.txt"), "new\n")
	testGit(t, c.Dir, "add", "--all", "--renormalize", ".")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "mv", "twice.bin", "moved.bin")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	write(t, filepath.Join(c.Dir, "later.txt"), "later\n")
	write(t, filepath.Join(c.Dir, "a.bin"), "a\x00b") // written anew
	write(t, filepath.Join(c.Dir, "whole.bin"), "still not a pointer\x00\n")
	pushed, err := w.Publish(t.Context(), c, *publication())
	if err != nil || !pushed.New {
		t.Fatalf("%+v, %v", pushed, err)
	}
	testGit(t, o.work, "fetch", "--quiet", "origin")
	if got := testGit(t, o.work, "diff", "--name-status", "main", pushed.Commit); got != "A\tlater.txt\nR100\ttwice.bin\tmoved.bin\nA\tnew.txt\nM\twhole.bin" {
		t.Errorf("published %s", got)
	}
	clean()
	// The next run fetches only what is new, and a second clone nothing.
	next := api
	next.Ref = "other"
	c = checkout(t, w, next)
	clean()
	if got := workTree(t, c.Dir)["a.bin"]; got != "other" {
		t.Errorf("a.bin: %q", got)
	}
	other := api
	other.Thread = "another"
	checkout(t, w, other)
	if s.served != 3 || len(s.stray) > 0 {
		t.Errorf("%d served, stray %v", s.served, s.stray)
	}
}

// The agent's own checkouts have the contents that the mirror has, and pointers to others.
func TestLFSOnAnotherBranch(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".gitattributes": gitAttributes, "a.bin": asPointer("one")})
	o.commit("other", map[string]string{"a.bin": asPointer("two"), "whole.bin": "\x00whole"})
	w, _ := o.serveLFS("one", "two")
	c := checkout(t, w, api)
	testGit(t, c.Dir, "checkout", "--quiet", "origin/other")
	if files := workTree(t, c.Dir); files["a.bin"] != asPointer("two") || files["whole.bin"] != "\x00whole" {
		t.Errorf("%q", files)
	}
	testGit(t, c.Dir, "checkout", "--quiet", "main")
	if got := workTree(t, c.Dir)["a.bin"]; got != "one" {
		t.Errorf("%q", got)
	}
	if out := testGit(t, c.Dir, "status", "--porcelain"); out != "" {
		t.Errorf("status: %s", out)
	}
}

// What belongs to Git LFS and is new is not published, neither as a pointer that leads nowhere nor as a whole.
func TestLFSIsNotPublished(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string){
		"changed": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a.bin"), "two") },
		"new":     func(t *testing.T, dir string) { write(t, filepath.Join(dir, "b.bin"), "two") },
		"committed": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "b.bin"), "two")
			testGit(t, dir, "add", "--all")
			testGit(t, dir, "commit", "--quiet", "--message", "work")
		},
		"committed and removed": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "a.bin"), "two")
			testGit(t, dir, "commit", "--quiet", "--all", "--message", "work")
			testGit(t, dir, "rm", "--quiet", "a.bin")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.commit("main", map[string]string{".gitattributes": gitAttributes, "a.bin": asPointer("one")})
			w, _ := o.serveLFS("one")
			c := checkout(t, w, api)
			if !c.LFS {
				t.Error("nobody is told before")
			}
			change(t, c.Dir)
			_, err := w.Publish(t.Context(), c, *publication())
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), `.bin" belongs to Git LFS`) {
				t.Errorf("%v", err)
			}
		})
	}
}

// What the repository has may move, even a pointer to what its server does not give, and a large file.
func TestMovedFilesAreFit(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".gitattributes": gitAttributes, "a.bin": asPointer("one"), "large.txt": strings.Repeat("large\n", maxFile/6+1),
	})
	w, _ := o.serveLFS()
	c := checkout(t, w, api)
	testGit(t, c.Dir, "mv", "a.bin", "b.bin")
	testGit(t, c.Dir, "mv", "large.txt", "there.txt")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "move")
	if _, err := w.Publish(t.Context(), c, *publication()); err != nil {
		t.Error(err)
	}
}

// A snapshot has what the agent has changed, and not what was fetched.
func TestLFSInASnapshot(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".gitattributes": gitAttributes, "a.bin": asPointer(strings.Repeat("a", 1<<20)), "b.bin": asPointer("b"),
		"line\nend.bin": asPointer("l"), "link.bin": asPointer("link"),
	})
	w, _ := o.serveLFS(strings.Repeat("a", 1<<20), "b", "l", "link")
	c := checkout(t, w, api)
	write(t, filepath.Join(c.Dir, "a.bin"), strings.Repeat("a", 1<<20)) // written anew
	write(t, filepath.Join(c.Dir, "line\nend.bin"), "l")
	if b, err := w.Snapshot(t.Context(), c, 10<<10); err != nil || b.Work != "" {
		t.Errorf("nothing has changed: %+v, %v", b, err)
	}
	write(t, filepath.Join(c.Dir, "b.bin"), "by the agent")
	write(t, filepath.Join(c.Dir, "moved"), "link")
	write(t, filepath.Join(c.Dir, "link.bin"), "-> moved")
	b, err := w.Snapshot(t.Context(), c, 10<<10)
	if err != nil || len(b.Missing) > 0 {
		t.Fatalf("%+v, %v", b, err)
	}
	elsewhere := open(t, Config{Dir: t.TempDir(), URL: w.cfg.URL, Credential: w.cfg.Credential})
	c, err = elsewhere.Restore(t.Context(), api, b)
	if err != nil {
		t.Fatal(err)
	}
	files := workTree(t, c.Dir)
	if len(files["a.bin"]) != 1<<20 || files["b.bin"] != "by the agent" || files["line\nend.bin"] != "l" ||
		files["link.bin"] != "-> moved" {
		t.Errorf("%.100q", files)
	}
}

// The content that the mirror has is that of the pointer, with its size, or it is fetched again.
func TestLFSInTheMirror(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lie := strings.Replace(asPointer("one"), "size 3", "size 2", 1)
	o.commit("main", map[string]string{".gitattributes": gitAttributes, "a.bin": asPointer("one"), "lie.bin": lie})
	w, s := o.serveLFS("one")
	c := checkout(t, w, api)
	for range 2 { // also when the mirror has it
		files := workTree(t, c.Dir)
		if files["a.bin"] != "one" || files["lie.bin"] != lie || len(c.Lacks) != 1 ||
			c.Lacks[0].Why != "its server has other contents than the pointers say" {
			t.Errorf("%q, lacks %+v", files, c.Lacks)
		}
		c = checkout(t, w, api)
	}
	for oid := range s.objects { // the machine has lost its power
		write(t, w.mirror("acme/api").lfs(oid), "on")
	}
	other := api
	other.Thread = "another"
	if got := workTree(t, checkout(t, w, other).Dir)["a.bin"]; got != "one" {
		t.Errorf("a.bin: %q", got)
	}
	// What cannot be stored is not blamed on the server.
	for oid := range s.objects {
		write(t, w.mirror("acme/api").lfs(oid), "")
	}
	if err := os.Mkdir(w.mirror("acme/api").lfs("tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	other.Thread = "a third"
	if c := checkout(t, w, other); len(c.Lacks) != 1 || c.Lacks[0].Why != "they cannot be stored" {
		t.Errorf("lacks %+v", c.Lacks)
	}
}

// A clone does not wait longer for what others fetch than for what it fetches itself.
func TestLFSFetchedByAnother(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w, _ := o.serveLFS()
	checkout(t, w, api)
	m, one := w.mirror("acme/api"), content{strings.Repeat("1", 64), 1}
	held, err := lock(t.Context(), m.beside("lfs"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(held)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		why, err := m.fetchLFS(t.Context(), []inLFS{{content: one}})
		if err != nil || why[one] != whyLate || time.Since(began) > 2*lfsLimit {
			t.Errorf("after %v: %v, %v", time.Since(began), why, err)
		}
	})
}

// What a server answers amiss is left as a pointer, and said.
func TestLFSRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve func(s *lfsServer)
		size  int64 // that the pointer claims; 0: the true one
		why   string
	}{
		"other contents":     {func(s *lfsServer) { s.all("lie") }, 0, "its server has other contents than the pointers say"},
		"shorter":            {func(s *lfsServer) { s.all("x") }, 0, "its server has other contents than the pointers say"},
		"endless":            {func(s *lfsServer) { s.all(endless) }, 0, "its server has other contents"},
		"unknown":            {func(s *lfsServer) { clear(s.objects) }, 0, "its server refuses them (404)"},
		"100 GB":             {nil, 100 << 30, "errand fetches at most 1000 of them with 1024 MiB together"},
		"redirect":           {func(s *lfsServer) { s.href = func(string) string { return redirectTo(s, "http://127.0.0.1:1") } }, 0, "its server redirects to another one"},
		"redirect elsewhere": {func(s *lfsServer) { s.href = func(string) string { return redirectTo(s, s.URL) } }, 0, "its server redirects to another one"},
		"file":               {func(s *lfsServer) { s.href = func(string) string { return "file:///etc/passwd" } }, 0, "its server names an address that errand does not use"},
		"no address":         {func(s *lfsServer) { s.href = func(string) string { return "" } }, 0, "its server names an address that errand does not use"},
		"no credential":      {func(s *lfsServer) { s.bare = true }, 0, "its server answers 403"},
		"unreachable":        {func(s *lfsServer) { s.href = func(string) string { return "http://127.0.0.1:1/secret" } }, 0, "its server cannot be reached"},
		"another credential": {func(s *lfsServer) { s.href = func(oid string) string { return s.URL + "/own/" + "0" + oid } }, 0, "its server answers 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			text := asPointer("one")
			if c.size > 0 {
				text = strings.Replace(text, "size 3", fmt.Sprint("size ", c.size), 1)
			}
			o.commit("main", map[string]string{".gitattributes": gitAttributes, "a.bin": text})
			w, s := o.serveLFS("one")
			if c.serve != nil {
				c.serve(s)
			}
			clone := checkout(t, w, api)
			if len(clone.Lacks) != 1 || !clone.Lacks[0].LFS || !strings.HasPrefix(clone.Lacks[0].Why, c.why) {
				t.Errorf("lacks %+v", clone.Lacks)
			}
			if got := workTree(t, clone.Dir)["a.bin"]; got != text {
				t.Errorf("a.bin: %.100q", got)
			}
			if out := testGit(t, clone.Dir, "status", "--porcelain"); out != "" {
				t.Errorf("status: %s", out)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.sent > 64<<20 {
				t.Errorf("%d bytes were read", s.sent)
			}
			if strings.Contains(strings.Join(s.stray, "\n"), "Basic") {
				t.Errorf("the credential was sent elsewhere: %v", s.stray)
			}
			if left, _ := os.ReadDir(filepath.Join(clone.Mirror, "lfs")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// all lets each object have this content.
func (s *lfsServer) all(content string) {
	for oid := range s.objects {
		s.objects[oid] = content
	}
}

// redirectTo returns the address of a server that redirects to another one.
func redirectTo(s *lfsServer, to string) string {
	r := httptest.NewServer(http.RedirectHandler(to+"/own/x", http.StatusFound))
	s.Config.RegisterOnShutdown(r.Close)
	return r.URL
}

// Without a server, as where a repository is a path, pointers stay.
func TestLFSWithoutAServer(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".gitattributes": gitAttributes, "a.bin": asPointer("one")})
	c := checkout(t, o.files(), api)
	if got := fmt.Sprint(c.Lacks); !strings.Contains(got, "the repository has no server for it: a.bin") {
		t.Error(got)
	}
}
