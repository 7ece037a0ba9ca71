package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cgi" //nolint:gosec // the vulnerability was fixed in Go 1.6.3
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const repo = "acme/large"

// origin is the remote repository, served by git's own backend.
type origin struct {
	dir    string // of the bare repository
	files  int
	server *httptest.Server
	asked  atomic.Int64 // number of fetches and listings
}

// newOrigin generates a repository of that many files of 0.2 to 3 KB, fifty in a directory, and that many MB of history.
func newOrigin(ctx context.Context, root string, files, history int) (*origin, error) {
	o := &origin{dir: filepath.Join(root, repo+".git"), files: files}
	if err := git(ctx, nil, "init", "--quiet", "--bare", "--initial-branch=main", o.dir); err != nil {
		return nil, err
	}
	if err := git(ctx, nil, "-C", o.dir, "config", "http.receivepack", "true"); err != nil {
		return nil, err
	}
	all := make([]int, files)
	for n := range all {
		all[n] = n
	}
	if err := o.commit(ctx, all); err != nil {
		return nil, err
	}
	if err := o.age(ctx, history); err != nil {
		return nil, err
	}
	unix.Sync() // a remote's disk is not the worker's
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("find git: %w", err)
	}
	backend := &cgi.Handler{
		Path: path, Args: []string{"http-backend"}, Stderr: io.Discard, InheritEnv: []string{"PATH"},
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
	}
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") && r.URL.Query().Get("service") == "git-upload-pack" {
			o.asked.Add(1)
		}
		backend.ServeHTTP(w, r)
	}))
	return o, nil
}

func (o *origin) close() { o.server.Close() }

func (o *origin) url(repo string) string { return o.server.URL + "/" + repo + ".git" }

// instructions import a file of the repository.
const instructions = "See @d000/e000/file0.txt."

// name of a file.
func name(n int) string { return fmt.Sprintf("d%03d/e%03d/file%d.txt", n/2500, n/50%50, n) }

// age adds commits that replace eight files of 128 KB each, which cannot be compressed.
func (o *origin) age(ctx context.Context, commits int) error {
	return o.feed(ctx, 0, func(w io.Writer) {
		random := rand.NewChaCha8([32]byte{})
		for n := range commits {
			fmt.Fprintf(w, "commit refs/heads/main\ncommitter bench <bench@localhost> 1700000000 +0000\ndata 1\nx\n")
			if n == 0 {
				fmt.Fprintln(w, "from refs/heads/main^0")
			}
			for n := range 8 {
				fmt.Fprintf(w, "M 100644 inline old/%d.bin\ndata %d\n", n, 128<<10)
				_, _ = io.CopyN(w, random, 128<<10) // fails with the git that reads it
				fmt.Fprintln(w)
			}
		}
	})
}

// commit writes these files, with other content than before, on top of main.
func (o *origin) commit(ctx context.Context, files []int) error {
	return o.feed(ctx, -1, func(w io.Writer) {
		fmt.Fprintf(w, "commit refs/heads/main\ncommitter bench <bench@localhost> 1700000000 +0000\ndata 1\nx\n")
		if len(files) < o.files {
			fmt.Fprintln(w, "from refs/heads/main^0")
		} else {
			fmt.Fprintf(w, "M 100644 inline CLAUDE.md\ndata %d\n%s\n", len(instructions), instructions)
		}
		for _, n := range files {
			text := text(10 + n%100)
			fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n%s\n", name(n), len(text), text)
		}
	})
}

// feed runs git fast-import with what write writes, and a level of compression, of which -1 is git's own.
func (o *origin) feed(ctx context.Context, level int, write func(io.Writer)) error {
	in, out := io.Pipe()
	go func() {
		w := bufio.NewWriter(out)
		write(w)
		fmt.Fprintln(w, "done")
		_ = out.CloseWithError(w.Flush()) // git reports its own end
	}()
	compression := fmt.Sprintf("pack.compression=%d", level)
	err := git(ctx, in, "-C", o.dir, "-c", compression, "fast-import", "--quiet", "--done")
	_ = in.Close()
	return err
}

func text(lines int) string {
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, "line %d says %x\n", n, rand.Uint32()) //nolint:gosec // only makes files different
	}
	return b.String()
}

// git runs git without any user's configuration.
func git(ctx context.Context, stdin io.Reader, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
