package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/dirtree"
)

// Layer is one directory of an environment for one thread.
type Layer struct {
	Lower   string // the environment's; empty: an empty directory
	Changes string // for what the thread's runs change
	At      string // in the clone; empty: the home
}

// Layers returns the directories of an environment for the runs in c, and makes the mount points in c. It copies the
// environment's files to c. What the thread's earlier runs changed is kept, unless the clone is new or they had another
// environment. A path is left
// out that is not a directory in c any more, or has files of the repository there.
func (s Environments) Layers(ctx context.Context, c Clone, e Environment) (_ []Layer, err error) {
	defer wrap(&err, "lay out the environment of %s", c.Repo)
	own, release, err := s.w.reach(ctx, c)
	if err != nil {
		return nil, err
	}
	defer release()
	all := own.beside("changes")
	// The changes belong to this environment: an overlay above another one is undefined.
	version := filepath.Join(all, fmt.Sprintf("%s-%d", e.ID, e.Created.UnixNano()))
	renew := c.Fresh || !exists(version)
	if renew {
		if err := dirtree.Remove(all); err != nil {
			return nil, fmt.Errorf("remove old changes: %w", err)
		}
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open clone: %w", err)
	}
	defer root.Close()
	if err := own.secure(); err != nil {
		return nil, fmt.Errorf("secure clone: %w", err)
	}
	tracked, err := own.git.run(ctx, "ls-files", "-z")
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	if renew {
		if err := own.giveFiles(ctx, e, root, "\x00"+tracked); err != nil {
			return nil, err
		}
	}
	layers := []Layer{{Lower: filepath.Join(e.dir, environmentHome), Changes: filepath.Join(version, environmentHome)}}
	var laid []string
	for i, name := range e.Dirs {
		if strings.Contains("\x00"+tracked, "\x00"+name+"/") {
			continue
		}
		if made, _ := makeDir(root, name); !made {
			continue
		}
		n := strconv.Itoa(i)
		layers = append(layers, Layer{
			Lower: filepath.Join(e.dir, n), Changes: filepath.Join(version, n), At: filepath.Join(c.Dir, name),
		})
		laid = append(laid, name)
	}
	for _, l := range layers {
		if err := os.MkdirAll(l.Changes, 0o700); err != nil {
			return nil, err
		}
	}
	if err := own.restoreFrom(ctx, root, strings.Split(tracked, "\x00"), laid); err != nil {
		return nil, err
	}
	return layers, os.WriteFile(filepath.Join(all, layeredFile), []byte(strings.Join(laid, "\x00")), 0o600)
}

// restoreFrom writes the tracked files of directories that were layers and are none now. A run that committed them
// wrote them to its layer, and without them they would count as deleted.
func (c clone) restoreFrom(ctx context.Context, root *os.Root, tracked, laid []string) error {
	was, is := c.layered(), within(laid)
	var missing strings.Builder
	for _, name := range tracked {
		if !was(name) || is(name) {
			continue
		}
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			missing.WriteString(name + "\x00")
		}
	}
	if missing.Len() == 0 {
		return nil
	}
	_, err := c.git.reading(missing.String()).run(ctx, "checkout-index", "-z", "--stdin")
	return err
}

// layeredFile lists the directories of a clone that runs see as layers.
const layeredFile = "dirs"

// layered returns a function that reports whether a file of the clone is in a layer, where only runs see it.
func (c clone) layered() func(name string) bool {
	list, err := os.ReadFile(filepath.Join(c.beside("changes"), layeredFile))
	if err != nil || len(list) == 0 {
		return within(nil)
	}
	return within(strings.Split(string(list), "\x00"))
}

// within returns a function that reports whether a file is below one of dirs.
func within(dirs []string) func(name string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
	}
}

// makeDir makes a directory with its parents. made is false if something else is in the place of one of them: a link
// would lead somewhere else.
func makeDir(root *os.Root, name string) (made bool, err error) {
	for at, part := "", filepath.ToSlash(name); part != ""; {
		var next string
		next, part, _ = strings.Cut(part, "/")
		at = filepath.Join(at, next)
		info, err := root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			err = root.Mkdir(at, 0o755)
		} else if err == nil && !info.IsDir() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
