package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Ready is a CLI that was started before its run, because starting takes most of the time up to the first word of an
// answer. It has loaded the conversation and has been sent nothing: the context, the rules and the tools of the run
// come with the first message. Until a run takes it, its gateway refuses every request. One run at most takes it, and
// only if that run would start exactly the same CLI.
//
// The caller gives it to a run (Spec.Ready) or ends it. Its keeper ends it if this process dies. All methods are safe
// for concurrent use; those of a nil *Ready do nothing.
type Ready struct {
	r       *Runner
	version [sha256.Size]byte // of the conversation that it has loaded
	files   []os.FileInfo     // that it has open or mounted
	done    <-chan struct{}   // closed when it has died

	mu    sync.Mutex
	cli   *command // nil: taken or ended
	taken bool
}

// ErrNotReady says that no CLI can be kept ready for runs of that kind.
var ErrNotReady = errors.New("no CLI can be kept ready for such a run")

// Ready starts a CLI that continues s.Resume. Of s, only what the command line, the environment and the sandbox of a
// run depend on is used, and a run with other values does not take it. ctx bounds the start.
//
// The error is ErrNotReady if the CLI could execute something at its start that s.Dir contains, or has servers: that
// must happen during a run only. It is ErrNotReady too without a gateway, which keeps the CLI from the model.
func (r *Runner) Ready(ctx context.Context, s Spec) (*Ready, error) {
	s.ID, s.Prompt, s.Model = "ready-"+uuid.NewString(), Message{Text: "-"}, r.model.StartModel(s.Model)
	servers := slices.ContainsFunc(r.cfg.Servers, func(m MCPServer) bool { return m.Serves(s.Profile) })
	if s.Resume == nil || !r.model.Gated() || s.trusts() || servers || holdsGit(s.Dir, s.Files) {
		return nil, ErrNotReady
	}
	if e := r.check(&s); e != nil {
		return nil, e
	}
	path, e := r.cli()
	if e != nil {
		return nil, e
	}
	files, err := filesOf(s, path)
	if err != nil {
		return nil, NewError(ClassWorkspace, err.Error())
	}
	c, e := r.command(ctx, invocation{cli: path, spec: s, resume: s.Resume}, true)
	if e != nil {
		return nil, e
	}
	if c == nil {
		return nil, context.Cause(ctx)
	}
	return &Ready{r: r, version: sha256.Sum256(s.Resume.Data), files: files, done: c.process.Done(), cli: c}, nil
}

// holdsGit reports whether one of the directories is a repository. The CLI runs git in its directory at its start, and
// the repository's configuration, which an agent may have written, names commands that git executes (CLI 2.1.329).
func holdsGit(dirs ...string) bool {
	for _, dir := range dirs {
		for _, name := range []string{".git", "HEAD"} { // HEAD: dir is itself a git directory
			if _, err := os.Lstat(filepath.Join(dir, name)); dir != "" && !errors.Is(err, os.ErrNotExist) {
				return true
			}
		}
	}
	return false
}

// filesOf returns the files that a CLI keeps open or mounted under their names.
func filesOf(s Spec, cli string) (files []os.FileInfo, err error) {
	for _, path := range slices.Concat([]string{cli, s.Dir}, s.further(), s.Reads) {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, nil
}

// Done is closed when the CLI has died.
func (y *Ready) Done() <-chan struct{} { return y.done }

// End ends the CLI and returns when all its processes are dead. It does nothing if a run has taken it.
func (y *Ready) End() {
	if c := y.release(); c != nil {
		c.end(y.r)
	}
}

// release returns the CLI to its only user, and nil to all others.
func (y *Ready) release() *command {
	if y == nil {
		return nil
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	c := y.cli
	y.cli = nil
	return c
}

// take returns the CLI if in would start the same now. Otherwise it ends the CLI and returns nil.
func (y *Ready) take(ctx context.Context, in invocation) *command {
	c := y.release()
	if c == nil {
		return nil
	}
	if why := y.misfit(ctx, c, in); why != "" {
		in.log.Note(time.Now(), "the CLI that was kept ready is not used: %s", why)
		c.end(y.r)
		return nil
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.taken = true
	c.gate.SetMax(in.spec.MaxUSD)
	return c
}

// misfit returns why a run cannot use the CLI, or "".
func (y *Ready) misfit(ctx context.Context, c *command, in invocation) string {
	select {
	case <-y.done:
		return "it has died"
	default:
	}
	if in.resume == nil || sha256.Sum256(in.resume.Data) != y.version {
		return "the conversation is another one"
	}
	files, err := filesOf(in.spec, in.cli)
	if err != nil || !slices.EqualFunc(files, y.files, os.SameFile) {
		return "the directories are other ones"
	}
	in.spec.ID = c.id
	dirs := c.dirs
	place, e := y.r.place(ctx, in.spec, in.cli, &dirs)
	if e != nil || !slices.Equal(place.Keeper.Args, c.place.Keeper.Args) {
		return "the sandbox is another one"
	}
	if allowed, e := credentialsFor(in.spec, y.r.cfg.Credentials); e != nil || !slices.Equal(allowed, c.credentials) {
		return "it may use other credentials for the model"
	}
	if !c.gate.Usable() { // another CLI gets another credential, or is refused
		return "its credential for the model is held or has reached its cap"
	}
	if order, err := y.r.order(c, in, place); err != nil || !reflect.DeepEqual(order, c.order) {
		return "the command or its environment is another one"
	}
	return ""
}

// broken reports whether a CLI that was kept ready failed before it could do anything for its run.
func (y *Ready) broken(res *Result) bool {
	if y == nil || res.Outcome != Failed || res.API == nil || res.API.Calls > 0 {
		return false
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.taken && slices.Contains([]Class{ClassStart, ClassConfig, ClassNoResult, ClassKilled, ClassOOM},
		res.Error.Class)
}

// end ends a CLI that no run has taken. It has done nothing, so nothing is lost.
func (c *command) end(r *Runner) {
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		for _, pipe := range []*os.File{c.process.Stdout, c.process.Stderr} {
			_, _ = io.Copy(io.Discard, pipe)
			_ = pipe.Close()
		}
	}()
	c.process.Term(0)
	_ = c.process.Stdin.Close()
	r.waitAll(c.id, c.process, quiet, func(text string) {
		r.log.Warn("end a CLI that was kept ready", "run", c.id, "why", text)
	})
	c.closeNetwork()
	r.removeDirs(c.id, c.dirs)
}
