package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

const (
	stderrKept = 4 << 10
	stdoutMax  = 64 << 20 // a listing of a million files
	// killWait bounds how long a killed git may keep its pipes open (stuck in the kernel, on a dead network disk).
	killWait = 5 * time.Second
)

// errLong is the error of a call whose output passed its limit; the output up to there is returned with it.
var errLong = errors.New("output too long")

// git describes how to run git: directory and environment. It is a value; its methods return modified copies. All git
// commands of this package go through run.
type git struct {
	path  string // of the program
	cwd   string // the root directory, never a clone: git must find no repository by itself
	dir   string // --git-dir; empty: outside a repository
	tree  string // --work-tree
	env   []string
	conf  []string  // key=value, overrides every configuration file
	stdin io.Reader // for the next run only, or nil
	limit int
	held  []*os.File // locks; see lock for why git inherits them
	// accepted are the malformed objects that a remote may have; see accepting.
	accepted []string
	// secret is removed from errors.
	secret string
}

func (g git) in(dir string) git { g.dir = dir; return g }

// at returns g for the clone with the work tree dir.
func (g git) at(dir string) git { g.dir, g.tree = filepath.Join(dir, ".git"), dir; return g }

func (g git) holding(f *os.File) git { g.held = append(slices.Clip(g.held), f); return g }

func (g git) reading(stdin string) git { g.stdin = strings.NewReader(stdin); return g }

// configured returns g with configuration in the form key=value.
func (g git) configured(conf ...string) git { g.conf = append(slices.Clip(g.conf), conf...); return g }

// having returns g with environment variables.
func (g git) having(env ...string) git { g.env = append(slices.Clip(g.env), env...); return g }

// findGit finds the program and returns the settings of all its runs.
func findGit(root string, env []string) (git, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return git{}, fmt.Errorf("find git: %w", err)
	}
	g := git{path: path, cwd: root, limit: stdoutMax}
	g.env = append([]string{
		"PATH=" + os.Getenv("PATH"), // for sh and git's own helpers
		// Use a home without .gitconfig, .netrc or .config/git.
		"HOME=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(root), // the root may be inside a developer's checkout
		"GIT_ALLOW_PROTOCOL=file:http:https",            // no ssh or ext: they start programs
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=", // set and empty: never ask
		"GIT_LFS_SKIP_SMUDGE=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_DEFAULT_REF_FORMAT=files",
		"LC_ALL=C", // remoteError reads the messages
	}, env...)
	g.conf = []string{
		"core.hooksPath=/dev/null",
		"core.fsmonitor=false",
		"core.attributesFile=/dev/null",
		"core.quotePath=false",
		"submodule.recurse=false",
		"credential.helper=",
		// The agent's git has this filter; see lfsFilter.
		"filter.lfs.clean=", "filter.lfs.smudge=", "filter.lfs.required=false",
		// Clones borrow from mirrors, so git must never pack or prune objects automatically.
		"gc.auto=0",
		"maintenance.auto=false",
		"checkout.workers=2", // since git 2.32; used for a hundred files or more
		"transfer.fsckObjects=true",
		// Git checks a pack that it keeps more thoroughly than one that it unpacks, and keeps only large ones.
		"fetch.unpackLimit=1",
		// End the call if the remote is silent. A busy one never is: uploadpack.keepAlive is 5 s.
		"http.lowSpeedLimit=1",
		"http.lowSpeedTime=120",
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := g.checkVersion(ctx); err != nil {
		return git{}, err
	}
	if g.accepted, err = g.findAccepted(ctx); err != nil {
		return git{}, err
	}
	return g, nil
}

// startLimit ends a git that hangs while it reports its version and what it can do.
const startLimit = 5 * time.Minute

var version = regexp.MustCompile(`git version (\d+)\.(\d+)`)

func (g git) checkVersion(ctx context.Context) error {
	out, err := g.run(ctx, "version")
	if err != nil {
		return err
	}
	return newEnough(out)
}

// newEnough requires git 2.32, the first version that joins packs by size. Git reads GIT_CONFIG_COUNT since 2.31, and
// older versions ignore it silently.
func newEnough(out string) error {
	m := version.FindStringSubmatch(out)
	if m == nil {
		return fmt.Errorf("git version: %q is not understood", out)
	}
	major, _ := strconv.Atoi(m[1]) // the pattern matches digits only
	minor, _ := strconv.Atoi(m[2])
	if major < 2 || major == 2 && minor < 32 {
		return fmt.Errorf("git version: %s.%s is too old, 2.32 is needed", m[1], m[2])
	}
	return nil
}

// run runs git and returns its standard output. No process outlives the call, even if ctx ends: git and its helpers
// are one process group and are killed together. sweep removes what a killed git leaves on disk.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	command := args[0]
	if g.tree != "" {
		args = append([]string{"--work-tree=" + g.tree}, args...)
	}
	if g.dir != "" {
		args = append([]string{"--git-dir=" + g.dir}, args...)
	}
	cmd := exec.CommandContext(ctx, g.path, args...)
	cmd.Dir = g.cwd
	cmd.Env = append(slices.Clip(g.env), confEnv(g.conf)...)
	cmd.ExtraFiles = g.held
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	cmd.Stdin = g.stdin
	out, errs := head{max: g.limit}, tail{max: stderrKept}
	// Wait returns only when every process that inherited these two has closed them.
	cmd.Stdout, cmd.Stderr = &out, &errs

	err := cmd.Run()
	switch {
	case out.full:
		return string(out.kept), fmt.Errorf("git %s: %w", command, errLong)
	case err == nil:
		return string(out.kept), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("git %s: %w", command, context.Cause(ctx))
	}
	return "", &gitError{command: command, stderr: redact(string(errs.kept), g.secret), err: err}
}

// holds runs a git command that answers by its exit code: 0 for yes, 1 for no.
func (g git) holds(ctx context.Context, args ...string) (bool, error) {
	_, err := g.run(ctx, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}

// updateIndex changes the index for these names, each of which ends in a NUL.
func (g git) updateIndex(ctx context.Context, names string, options ...string) error {
	if names == "" {
		return nil
	}
	_, err := g.reading(names).run(ctx, append(append([]string{"update-index"}, options...), "-z", "--stdin")...)
	return err
}

// gitObject is one of a repository's objects.
type gitObject struct {
	name, content string
}

// objects reads the objects with these names, each in a line, in their order. It returns an error if one is missing.
func (g git) objects(ctx context.Context, names string) ([]gitObject, error) {
	if names == "" {
		return nil, nil
	}
	out, err := g.reading(names).run(ctx, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	var all []gitObject
	for out != "" {
		head, rest, _ := strings.Cut(out, "\n") // "<name> <type> <size>", the object and a line end
		fields := strings.Fields(head)
		if len(fields) != 3 {
			return nil, errOutput
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size < 0 || size >= len(rest) {
			return nil, errOutput
		}
		all, out = append(all, gitObject{fields[0], rest[:size]}), rest[size+1:]
	}
	return all, nil
}

// errOutput means that git printed something else than it documents.
var errOutput = errors.New("git cat-file: its output is not understood")

// confEnv puts configuration into the environment, which unlike -c does not show in the command line.
func confEnv(conf []string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(conf))}
	for i, kv := range conf {
		key, value, _ := strings.Cut(kv, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
}

// head keeps the first max bytes and refuses the rest, which ends the writing process (SIGPIPE).
type head struct {
	kept []byte
	max  int
	full bool // more than max bytes were written
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.max-len(h.kept))
	h.kept = append(h.kept, p[:n]...)
	if n < len(p) {
		h.full = true
		return n, errLong
	}
	return n, nil
}

// tail keeps the last max bytes.
type tail struct {
	kept []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.max; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// redact removes the secret, also in its URL-encoded form. The beginning of a tail may contain the end of a split
// secret, so redact removes that too.
func redact(s, secret string) string {
	if secret == "" {
		return s
	}
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		s = strings.ReplaceAll(s, form, "[redacted]")
		for i := 1; i < len(form)-3; i++ {
			if rest, found := strings.CutPrefix(s, form[i:]); found {
				s = "[redacted]" + rest
				break
			}
		}
	}
	return s
}

// The whole configuration of errand's git directories. Neither contains a remote: mirrors get the URL as an argument,
// clones have none. Housekeeping is off for the agent's git too, because it would continue in the background after the
// run.
const (
	mirrorConfig = `[core]
	repositoryformatversion = 0
	bare = true
	logAllRefUpdates = false
` + noHousekeeping
	cloneConfig = `[core]
	repositoryformatversion = 0
	bare = false
	logAllRefUpdates = true
` + noHousekeeping
	noHousekeeping = `[gc]
	auto = 0
[maintenance]
	auto = false
`
)

// secure makes a git directory safe for the host's git, regardless of what an agent did to it. It replaces the
// configuration, limits borrowed objects to alternates, removes links that lead elsewhere, and removes stale locks. It
// fails if there is no git directory.
//
// The configuration is replaced and not overridden, because many keys execute something and some cannot be overridden
// (core.alternateRefsCommand, include.path, remote.<url>.uploadpack). Attributes and hooks may stay: attributes only
// name filters and drivers, which the configuration would have to define, and core.hooksPath disables hooks in every
// call.
func secure(dir, config, alternates string) error {
	for _, d := range []string{filepath.Dir(dir), dir} {
		fi, err := os.Lstat(d)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			return fmt.Errorf("%s is not a directory", d)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := sweep(root); err != nil {
		return err
	}
	// Git would read configuration and refs from the directory that it names.
	if err := root.RemoveAll("commondir"); err != nil {
		return err
	}
	if err := put(root, "config", config); err != nil {
		return err
	}
	if alternates == "" {
		return root.RemoveAll("objects/info/alternates")
	}
	return put(root, "objects/info/alternates", alternates+"\n")
}

// shared reports whether a file has several hard links. Git appends to logs in place, and would change the other file
// too.
func shared(d fs.DirEntry) bool {
	info, err := d.Info()
	if err != nil {
		return false // it is gone
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// sweep removes everything that belongs to no running git, as none runs here: lock files, partly written objects, and
// everything that is neither file nor directory. Git follows links when it writes, and hangs when it reads a pipe.
func sweep(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		half := strings.HasPrefix(name, "objects/") && strings.HasPrefix(d.Name(), "tmp_")
		file := d.Type().IsRegular() && path.Ext(name) != ".lock" && !shared(d)
		if (file || d.IsDir()) && !half {
			return nil
		}
		return removeEntry(root, name, d)
	})
}

// removeEntry removes an entry from within a walk, which then skips what was below it.
func removeEntry(root *os.Root, name string, d fs.DirEntry) error {
	if err := root.RemoveAll(name); err != nil || !d.IsDir() {
		return err
	}
	return fs.SkipDir
}

// put replaces a file atomically, so that a concurrent git sees the old or the new content. It never writes through a
// hard link.
func put(root *os.Root, name, content string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	tmp := name + ".new"
	if err := root.RemoveAll(tmp); err != nil {
		return err
	}
	if err := root.WriteFile(tmp, []byte(content), 0o644); err != nil {
		return err
	}
	if fi, err := root.Lstat(name); err == nil && fi.IsDir() {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return root.Rename(tmp, name)
}

// exists reports whether path exists, even as a dangling link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// replace moves the finished tmp to dst, and what was at dst to aside.
func replace(tmp, dst, aside string) error {
	if err := dirtree.Remove(aside); err != nil {
		return err
	}
	if err := os.Rename(dst, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(tmp, dst)
}
