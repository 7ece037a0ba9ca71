package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Diff is what c.Head changed since it left c.Base, as a patch of at most limit bytes, cut after a whole line. Git runs in the
// mirror, so neither configuration nor attributes of the clone can hide a change or execute anything.
// If Head was made in the clone (Keep), its objects are read from there, and no agent may run in it meanwhile.
func (w *Workspace) Diff(ctx context.Context, c Clone, limit int) (text string, truncated bool, err error) {
	text, truncated, err = w.diff(ctx, c, limit)
	if err != nil {
		return "", false, fmt.Errorf("diff %s: %w", c.Repo, err)
	}
	return text, truncated, nil
}

func (w *Workspace) diff(ctx context.Context, c Clone, limit int) (string, bool, error) {
	if err := checkRepo(c.Repo); err != nil {
		return "", false, err
	}
	if !fullSHA.MatchString(c.BaseSHA) || !fullSHA.MatchString(c.Head) {
		return "", false, errors.New("base or head is not a full SHA")
	}
	m := w.mirror(c.Repo)
	g := m.git
	if _, err := m.commit(ctx, c.Head); errors.Is(err, ErrRef) {
		own := clone{dir: c.Dir, mirror: m}
		if err := own.secure(); err != nil {
			return "", false, err
		}
		objects := filepath.Join(c.Dir, ".git", "objects")
		g.env = append(slices.Clip(g.env), `GIT_ALTERNATE_OBJECT_DIRECTORIES="`+quoted.Replace(objects)+`"`)
	}
	// Larger files are binary: nobody reads their diff, and it takes memory.
	g.conf = append(slices.Clip(g.conf), "core.bigFileThreshold=8m")
	out, truncated, err := g.lines(ctx, limit, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", c.BaseSHA+"..."+c.Head, "--")
	return strings.ToValidUTF8(out, "\uFFFD"), truncated, err
}

// quoted is what git undoes in a path list that otherwise ends at the first colon.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
