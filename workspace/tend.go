package workspace

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/dirtree"
)

const (
	// namedFor is how long a mirror names our commits that no ref of the remote has, so that they are neither saved
	// once more from each clone nor lost with the mirror. Threads usually keep clones for a shorter time.
	namedFor = 90 * 24 * time.Hour
	// maxPacks is the number of packs above which they are joined. Each update that brings something adds one.
	maxPacks = 20
	// looseSample is the directory by whose objects git estimates the number of all loose ones, which is 256 times
	// as high, and maxLoose its bound.
	looseSample = "17"
	maxLoose    = 20
)

// Tend drops what a mirror no longer needs to know of our commits, and joins its packs if there are many. It does
// nothing while the mirror is being updated; whoever wants to update it waits meanwhile. No object is dropped.
func (w *Workspace) Tend(ctx context.Context, repo string) (err error) {
	defer wrap(&err, "tend mirror of %s", repo)
	m := w.mirror(repo)
	held, err := tryLock(m.beside("lock"))
	if held == nil || err != nil {
		return err
	}
	defer unlock(held)
	if !exists(m.dir) {
		return nil
	}
	m.git = m.git.holding(held)
	if err := secure(m.dir, mirrorConfig, ""); err != nil { // it also removes what a killed git was writing
		return err
	}
	if err := m.dropNames(ctx); err != nil {
		return err
	}
	return m.pack(ctx)
}

// Refs in a mirror that name our commits.
const (
	// publishedRefs lead to the commits that errand has pushed, or tried to push.
	publishedRefs = "refs/errand/published/"
	// originals lead to the commits that have signed copies.
	originals = "refs/errand/originals/"
)

// nameNow returns the ref below prefix for a commit that is published now. It has the time, because the dates of the
// commit are up to the run.
func nameNow(prefix, commit string) string {
	return fmt.Sprintf("%s%d-%s", prefix, time.Now().Unix(), commit)
}

// dropNames deletes the refs of our commits that the remote has in one of its own, and of those that were published
// long ago.
func (m mirror) dropNames(ctx context.Context) error {
	out, err := m.git.run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", publishedRefs, originals)
	if err != nil || out == "" {
		return err
	}
	beyond, err := m.git.run(ctx, "rev-list", "--glob=refs/errand", "--not", "--branches", "--tags", "--glob=refs/pull")
	if err != nil {
		return err
	}
	var drop strings.Builder
	for line := range strings.Lines(out) {
		commit, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		made, _, _ := strings.Cut(path.Base(ref), "-")
		at, err := strconv.ParseInt(made, 10, 64)
		recent := err == nil && time.Since(time.Unix(at, 0)) <= namedFor
		if !recent || !strings.Contains(beyond, commit) {
			drop.WriteString("delete " + ref + " " + commit + "\n")
		}
	}
	_, err = m.git.reading(drop.String()).run(ctx, "update-ref", "--stdin")
	return err
}

// pack joins small packs and loose objects until each pack has at least as much as all smaller ones, so that large
// ones are seldom written again. Clones may borrow what no ref leads to any more, and it stays.
func (m mirror) pack(ctx context.Context) error {
	objects := filepath.Join(m.dir, "objects")
	packs, err := filepath.Glob(filepath.Join(objects, "pack", "*.pack"))
	if err != nil {
		return err
	}
	loose, err := list(filepath.Join(objects, looseSample))
	if err != nil {
		return err
	}
	if len(packs) <= maxPacks && len(loose) <= maxLoose {
		return nil
	}
	g := m.git.configured("pack.threads=1", "pack.windowMemory=64m")
	if _, err := g.run(ctx, "repack", "-d", "--quiet", "--geometric=2"); err != nil {
		return err
	}
	if _, err := m.git.run(ctx, "pack-refs", "--all"); err != nil {
		return err
	}
	return dirtree.Remove(m.beside("size")) // it has changed without a fetch
}
