package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Restore recreates the clone that b was made of, on any machine: its commits, branches and index, and its files, so
// that uncommitted work is uncommitted again. It ignores want.Ref. The new clone is complete before it replaces the
// thread's clone, which is then set aside or, without want.Keep, removed.
//
// ErrBundle means that b cannot be restored; then there is no clone, or the old one. Other errors are those of
// Checkout.
func (w *Workspace) Restore(ctx context.Context, want Want, b Bundle) (Clone, error) {
	c, err := w.restore(ctx, want, b)
	if err != nil {
		return Clone{}, fmt.Errorf("restore %s: %w", want.Repo, err)
	}
	return c, nil
}

func (w *Workspace) restore(ctx context.Context, want Want, b Bundle) (Clone, error) {
	if err := want.check(); err != nil {
		return Clone{}, err
	}
	needs, pack, err := b.open(want.Repo)
	if err != nil {
		return Clone{}, err
	}
	c, release, err := w.hold(ctx, want)
	if err != nil {
		return Clone{}, err
	}
	defer release()

	t, err := c.mirror.sync(ctx, want)
	if t.baseSHA == "" {
		return Clone{}, err
	}
	for _, sha := range needs {
		_, err := c.mirror.sync(ctx, Want{Ref: sha, Base: want.Base})
		if errors.Is(err, ErrRef) {
			return Clone{}, fmt.Errorf("%w: commit %s is not there any more", ErrBundle, sha)
		}
		if err != nil {
			return Clone{}, err
		}
	}
	made, err := w.make(ctx, c, want, t, func(tmp clone) error {
		err := tmp.unbundle(ctx, b, pack)
		if _, failed := errors.AsType[*gitError](err); failed {
			return fmt.Errorf("%w: %w", ErrBundle, err)
		}
		return err
	})
	made.Fresh = false
	return made, err
}

// unbundle checks the whole bundle and then checks it out.
func (c clone) unbundle(ctx context.Context, b Bundle, pack []byte) error {
	if len(pack) > 0 {
		g := c.git
		g.stdin = bytes.NewReader(pack)
		// Strict: every object that another one names exists, and none is one that git would not create, such as a
		// file .git/config.
		if _, err := g.run(ctx, "index-pack", "--stdin", "--fix-thin", "--strict"); err != nil {
			return err
		}
	}
	var refs strings.Builder
	for name, sha := range b.Refs {
		fmt.Fprintf(&refs, "update %s %s\n", name, sha)
	}
	if _, err := c.git.reading(refs.String()).run(ctx, "update-ref", "--create-reflog", "--stdin"); err != nil {
		return err
	}
	if err := c.checkOut(ctx, b.Head, b.Branch); err != nil || b.Work == "" {
		return err
	}
	return c.overlay(ctx, b.Work)
}

// exact makes git write files byte by byte and ignore the work tree's attributes for line ends, encodings and filters.
const exact = "* -text -ident -filter !eol !working-tree-encoding\n"

// overlay applies the index and files of a snapshot to its HEAD, which is checked out.
func (c clone) overlay(ctx context.Context, work string) error {
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	index := work + "^"
	if _, err := c.git.run(ctx, "read-tree", "-m", "-u", "HEAD", index); err != nil {
		return err
	}
	diff := []string{"diff-tree", "-r", "-z", "--no-renames", "--name-only"}
	gone, err := c.git.run(ctx, append(diff, "--diff-filter=D", index, work)...)
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(gone, "\x00") {
		prune(root, name)
	}
	files, err := c.git.run(ctx, append(diff, "--diff-filter=d", index, work)...)
	if err != nil || files == "" {
		return err
	}
	// Use a separate index, so that the clone's index stays that of the snapshot, and write the files byte by byte, as
	// they were read.
	const attributes, other = ".git/info/attributes", ".git/work.index"
	g := c.git
	g.env = append(slices.Clip(g.env), "GIT_INDEX_FILE="+filepath.Join(c.dir, other))
	if err := put(root, attributes, exact); err != nil {
		return err
	}
	if _, err := g.run(ctx, "read-tree", work); err != nil {
		return err
	}
	if _, err := g.reading(files).run(ctx, "checkout-index", "--force", "-z", "--stdin"); err != nil {
		return err
	}
	if err := errors.Join(root.Remove(attributes), root.Remove(other)); err != nil {
		return err
	}
	_, err = c.git.run(ctx, "update-index", "-q", "--refresh")
	return err
}

// prune removes a file and the directories that become empty.
func prune(root *os.Root, name string) {
	for name != "." && name != "" && root.Remove(name) == nil {
		name = path.Dir(name)
	}
}
