package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// The files of a submodule are put into a new clone without a git directory. For git the directory then is a submodule
// that nobody has checked out: it looks at nothing below, so no git runs where an agent could configure it, and nothing
// below is published.

// Bounds of what is fetched for one clone.
const (
	maxSubmodules     = 50
	maxSubmoduleFiles = 200_000 // of all of them
	maxSubmoduleBytes = 2 << 30
	submodulesLimit   = 10 * time.Minute
	submoduleLimit    = 5 * time.Minute  // of one of them
	slowLimit         = 30 * time.Second // of one that has exceeded it and is fetched beside runs
	slowFor           = time.Hour        // how long that is tried
)

// Whys of submodules that are not fetched.
const (
	whyNoAddress = "the protected branch has no address for them in .gitmodules"
	whyElsewhere = "errand fetches submodules only from its own forge"
	whyInner     = "errand fetches nothing from Git LFS for submodules"
	whyMany      = "errand fetches at most " // and how many
	whyLate      = "they did not arrive in time"
)

// submodule is a directory of a clone for the files of another repository.
type submodule struct {
	Name string
	In   string // the submodule that has it; "": the clone itself
	Repo string // whose files are there; "": none are

	commit, address string
	of              mirror // of the repository that has it
}

// inside is what a clone has and lacks in submodules.
type inside struct {
	All      []submodule // each after the one that has it
	Pointers []string    // files
}

// submodules fetches the files of the submodules of a new clone, and of those that these have. The index names the
// commits, and the protected branch of each repository addresses them: whoever writes another branch may not choose a
// repository. It notes why it leaves out others.
func (c clone) submodules(ctx context.Context, want Want, protected string, links []treeFile) (inside, error) {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return inside{}, err
	}
	defer root.Close()
	limited, cancel := context.WithTimeout(ctx, submodulesLimit)
	defer cancel()
	f := &fetcher{clone: c, root: root, may: want.Submodule, files: maxSubmoduleFiles, bytes: maxSubmoduleBytes}
	if f.All, err = c.mirror.modules(ctx, protected, "", links); err != nil {
		return inside{}, err
	}
	for i := 0; i < len(f.All); i++ { // fetch adds to them
		s := &f.All[i]
		if i >= maxSubmodules {
			c.why[s.Name] = whyMany + strconv.Itoa(maxSubmodules)
			continue
		}
		why, err := f.fetch(limited, s)
		if ctx.Err() != nil {
			return inside{}, context.Cause(ctx)
		}
		if err != nil {
			c.mirror.w.log.WarnContext(ctx, "submodule is left out", "dir", c.dir, "name", s.Name, "err", err)
			why = fetchReason(err)
			if err := empty(root, s.Name); err != nil { // a part would pass for the whole
				return inside{}, err
			}
		}
		c.why[s.Name] = why
	}
	return f.inside, nil
}

// modules returns the submodules of a repository, which is one itself in a clone, or "".
func (m mirror) modules(ctx context.Context, protected, in string, links []treeFile) (all []submodule, _ error) {
	if len(links) == 0 {
		return nil, nil
	}
	urls, err := m.addresses(ctx, protected)
	for _, l := range links {
		all = append(all, submodule{
			Name: path.Join(in, l.name), In: in, commit: l.object, address: urls[l.name], of: m,
		})
	}
	return all, err
}

// fetchReason returns why a submodule is missing, as a clause for people.
func fetchReason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return whyLate
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrAuth):
		return "errand has no access to their repositories"
	case errors.Is(err, ErrRef):
		return "their commits are on no branch and no tag"
	case errors.Is(err, ErrUnsafe):
		return "their histories have objects that endanger a checkout"
	}
	return "fetching them failed"
}

// addresses returns the addresses of submodules by path, as a commit has them in .gitmodules.
func (m mirror) addresses(ctx context.Context, commit string) (map[string]string, error) {
	out, err := m.git.run(ctx, "config", "--blob", commit+":.gitmodules", "-z", "--get-regexp",
		`^submodule\..*\.(path|url)$`)
	if gitFailed(err) {
		return nil, nil // it does not exist, or is not valid
	}
	if err != nil {
		return nil, err
	}
	names := map[string]string{}                       // by path; of several with one path the last counts, as for git
	urls := map[string]string{}                        // by name
	for entry := range strings.SplitSeq(out, "\x00") { // "submodule.<name>.path\n<value>"
		key, value, _ := strings.Cut(entry, "\n")
		if name, found := strings.CutSuffix(key, ".path"); found {
			names[value] = name
		} else if name, found := strings.CutSuffix(key, ".url"); found {
			urls[name] = value
		}
	}
	all := map[string]string{}
	for at, name := range names {
		all[at] = urls[name]
	}
	return all, nil
}

// scpAddress is an address as in git@github.com:acme/api.git.
var scpAddress = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+@)?([A-Za-z0-9.-]+):([^/].*)$`)

// repoAt returns the repository of this forge that an address in .gitmodules leads to, or "".
func (m mirror) repoAt(address string) string {
	repo := ""
	home, err := url.Parse(m.w.cfg.URL(m.repo))
	if err != nil {
		return ""
	}
	prefix := strings.TrimSuffix(strings.TrimSuffix(home.Path, ".git"), m.repo)
	if strings.HasPrefix(address, "./") || strings.HasPrefix(address, "../") {
		repo = path.Join(m.repo, address) // what leads out of the forge begins with two dots, and is no name
	} else if u, err := url.Parse(address); err == nil && u.Host != "" {
		same := u.Host == home.Host && (u.Scheme == "https" || u.Scheme == "http")
		same = same || u.Hostname() == home.Hostname() && u.Scheme == "ssh"
		at, below := strings.CutPrefix(u.Path, prefix)
		if repo = at; !same || !below {
			return ""
		}
	} else if s := scpAddress.FindStringSubmatch(address); s != nil && s[1] == home.Hostname() {
		repo = s[2]
	}
	repo = strings.TrimSuffix(strings.TrimSuffix(repo, "/"), ".git")
	if checkRepo(repo) != nil {
		return ""
	}
	return repo
}

// fetcher fetches submodules into one clone.
type fetcher struct {
	clone clone
	root  *os.Root // of the clone
	may   func(ctx context.Context, repo string) (why string, err error)
	files int // that there is room for
	bytes int64

	inside // so far
}

// fetch fetches the files of one submodule, and adds those that it has. why says why it may not.
func (f *fetcher) fetch(ctx context.Context, s *submodule) (why string, err error) {
	if made, err := makeDir(f.root, s.Name); !made {
		return "something else is in their places", err
	}
	if s.address == "" {
		return whyNoAddress, nil
	}
	repo := s.of.repoAt(s.address)
	switch {
	case repo == "":
		return whyElsewhere, nil
	case f.may == nil:
		return "errand fetches no submodules here", nil
	}
	if why, err := f.may(ctx, repo); why != "" || err != nil {
		return why, err
	}
	m, release, err := f.clone.mirror.w.use(ctx, repo, f.clone.git.held)
	if err != nil {
		return "", err
	}
	defer release()
	t, err := m.syncInTime(ctx, s.commit)
	if err != nil {
		return "", err
	}
	if why, err := f.weigh(ctx, m, s.commit); why != "" || err != nil {
		return why, err
	}
	links, pointers, err := f.write(ctx, m, *s)
	if err != nil {
		return "", err
	}
	further, err := m.modules(ctx, t.protectedSHA, s.Name, links)
	if err != nil {
		return "", err
	}
	s.Repo = repo // before f.All may move
	f.All = append(f.All, further...)
	for _, p := range pointers {
		f.Pointers = append(f.Pointers, path.Join(s.Name, p.name))
	}
	return "", nil
}

// syncInTime updates the mirror of a submodule unless it has a commit. A slow one costs only the first clone the whole
// limit.
func (m mirror) syncInTime(ctx context.Context, commit string) (tip, error) {
	_, slow := m.w.slow.Load(m.repo)
	limit := submoduleLimit
	if slow {
		limit = slowLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t, err := m.sync(limited, Want{Ref: commit, Runs: true}) // a commit that only a fork has would be a stranger's
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !slow {
		m.w.FetchLater(m.repo)
	}
	return t, err
}

// FetchLater leaves a repository to FetchSlow. As a submodule, clones wait for it a shorter time.
func (w *Workspace) FetchLater(repo string) { w.slow.Store(repo, time.Now().Add(slowFor)) }

// FetchSlow fetches the repositories that did not arrive in time, so that later clones find them. Those that fail are
// left for the next call, for about an hour, unless the failure is lasting. One that does not end in an hour is given
// up, so that others have a turn.
func (w *Workspace) FetchSlow(ctx context.Context) {
	w.slow.Range(func(repo, until any) bool {
		limited, cancel := context.WithTimeout(ctx, slowFor)
		defer cancel()
		m, release, err := w.use(limited, repo.(string), nil)
		if err == nil {
			_, err = m.sync(limited, Want{})
			release()
		}
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			w.log.WarnContext(ctx, "slow repository is not fetched", "repo", repo, "err", err)
		}
		if err == nil || Lasting(err) || time.Now().After(until.(time.Time)) {
			w.slow.Delete(repo)
		}
		return true
	})
}

// weigh reports whether there is room for the files of a commit, and takes it.
func (f *fetcher) weigh(ctx context.Context, m mirror, commit string) (why string, err error) {
	tooMany := fmt.Sprintf("%s%d files with %d MiB of them", whyMany, maxSubmoduleFiles, maxSubmoduleBytes>>20)
	out, err := m.git.run(ctx, "ls-tree", "-r", "-l", "-z", commit)
	if errors.Is(err, errLong) {
		return tooMany, nil
	} else if err != nil {
		return "", err
	}
	files, bytes := f.files, f.bytes
	for line := range strings.SplitSeq(out, "\x00") { // "100644 blob <object> <size>\t<name>"
		meta, _, _ := strings.Cut(line, "\t")
		if fields := strings.Fields(meta); len(fields) == 4 {
			n, _ := strconv.ParseInt(fields[3], 10, 64) // a submodule has no size
			bytes -= n
			files--
		}
	}
	if files < 0 || bytes < 0 {
		return tooMany, nil
	}
	f.files, f.bytes = files, bytes
	return "", nil
}

// write writes the files of a submodule to the new clone. It returns what git leaves out of them.
func (f *fetcher) write(ctx context.Context, m mirror, s submodule) (links []treeFile, pointers []inLFS, err error) {
	index := filepath.Join(f.clone.git.dir, "submodule")
	defer func() { _ = os.Remove(index) }()
	g := m.git.having("GIT_INDEX_FILE=" + index)
	g.tree = filepath.Join(f.clone.dir, s.Name)
	if _, err := g.run(ctx, "read-tree", s.commit); err != nil {
		return nil, nil, err
	}
	if _, err := g.run(ctx, "checkout-index", "--all", "--force", "--quiet"); err != nil {
		return nil, nil, err
	}
	return g.inventory(ctx)
}

// empty removes what is in a directory.
func empty(root *os.Root, name string) error {
	return errors.Join(root.RemoveAll(name), root.Mkdir(name, 0o755))
}

// errRights means that nobody can say who may read a repository.
var errRights = errors.New("the rights to a submodule are not known")

// withdraw removes the files of submodules from a clone to be kept that the run may not have.
func (c clone) withdraw(ctx context.Context, want Want, protected string, links []treeFile) (inside, error) {
	there, err := c.inside(ctx, protected, links)
	if err != nil || want.Submodule == nil {
		return there, err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return there, err
	}
	defer root.Close()
	for _, s := range there.All {
		if s.Repo == "" || hollow(root, s.Name) {
			continue
		}
		if made, err := makeDir(root, s.Name); err != nil {
			return there, err
		} else if !made {
			continue
		}
		if c.why[s.Name], err = want.Submodule(ctx, s.Repo); err != nil {
			return there, fmt.Errorf("%w: %w", errRights, err)
		}
		if c.why[s.Name] != "" {
			if err := empty(root, s.Name); err != nil {
				return there, err
			}
		}
	}
	return there, nil
}

// inside returns what was put into a clone to be kept. An earlier version has not noted it: then it is what the
// protected branch says.
func (c clone) inside(ctx context.Context, protected string, links []treeFile) (there inside, _ error) {
	data, err := os.ReadFile(c.beside("submodules"))
	if err == nil {
		return there, json.Unmarshal(data, &there)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return there, err
	}
	there.All, err = c.mirror.modules(ctx, protected, "", links)
	for i, s := range there.All {
		there.All[i].Repo = s.of.repoAt(s.address)
	}
	return there, err
}

// putInside notes what a new clone has in submodules.
func (c clone) putInside(there inside) error {
	if len(there.All) == 0 {
		return dirtree.Remove(c.beside("submodules"))
	}
	data, err := json.Marshal(there)
	if err != nil {
		return err
	}
	return os.WriteFile(c.beside("submodules"), data, 0o600)
}
