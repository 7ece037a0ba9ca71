package workspace

import (
	"context"
	"errors"
	"io/fs"
	"strings"
)

// nested lists where the clone holds other repositories, or other work trees of its own: submodules, and what an agent has cloned into it and
// added. Git looks at no more of them than which commit they are at.
func (s *shadow) nested(ctx context.Context) (found []string, err error) {
	// Git's own places for the repositories of submodules and for work trees; it removes the latter with the last one.
	places := []string{".git/modules", ".git/worktrees"}
	out, err := s.git.run(ctx, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(out, "\x00") { // "160000 <object> <stage>\t<name>"
		if meta, name, _ := strings.Cut(entry, "\t"); strings.HasPrefix(meta, "160000 ") {
			places = append(places, name)
		}
	}
	for _, dir := range places {
		if info, err := s.files.Lstat(dir); err != nil || !info.IsDir() || s.throughLink(dir) {
			continue // not there; what is in its place is a change as any
		}
		entries, err := fs.ReadDir(s.files.FS(), dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
			found = append(found, dir)
		}
	}
	return found, nil
}
