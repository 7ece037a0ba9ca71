package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/instructions"
)

// Instructions returns what the repository tells an agent, as it is at c.ProtectedSHA, whatever the head and the agent
// have changed. Links are followed within the commit.
func (w *Workspace) Instructions(ctx context.Context, c Clone) (set instructions.Set, err error) {
	defer wrap(&err, "read the instructions of %s", c.Repo)
	own, release, err := w.reach(ctx, c)
	if err != nil {
		return set, err
	}
	defer release()
	all, err := own.mirror.tree(ctx, c.ProtectedSHA, "*CLAUDE.md", "*CLAUDE.local.md", "*AGENTS.md", "*.claude*")
	if errors.Is(err, errLong) {
		set.Notes = []string{"The instructions are left out: the repository has too many files to search them."}
		return set, nil
	}
	if err != nil {
		return set, err
	}
	found, left, err := own.mirror.resolved(ctx, c.ProtectedSHA, all, instructions.Wanted)
	if err != nil {
		return set, err
	}
	var names []string
	for _, f := range slices.Concat(all, found) {
		names = append(names, f.name)
	}
	slices.Sort(names)
	read := func(names []string, most, room int) ([]instructions.Blob, error) {
		return own.mirror.blobs(ctx, c.ProtectedSHA, names, most, room)
	}
	set, err = instructions.Collect(slices.Compact(names), read)
	if left > 0 {
		set.Notes = append(set.Notes, fmt.Sprintf("%d links in .claude are left out: "+
			"at most %d are followed, to %d files.", left, maxLinks, maxLinked))
	}
	return set, err
}

// blobs is an instructions.Reader of the files of a commit. The names have no line breaks.
func (m mirror) blobs(
	ctx context.Context, commit string, names []string, most, room int,
) ([]instructions.Blob, error) {
	blobs := make([]instructions.Blob, len(names))
	all := commit + ":" + strings.Join(names, "\n"+commit+":") + "\n"
	out, err := m.git.reading(all).run(ctx, "cat-file", "--batch-check", "--follow-symlinks")
	if err != nil {
		return nil, err
	}
	var asked strings.Builder
	var small []int // the blobs to read
	for i := range blobs {
		var line string
		line, out, _ = strings.Cut(out, "\n")
		f := strings.Fields(line) // "<object> blob <size>"
		blobs[i].Size = -1
		switch {
		case strings.HasSuffix(line, " missing"):
		case len(f) == 2: // "symlink <length>", and so many bytes of the path that leads nowhere
			blobs[i].Unread = f[0] != "notdir" // otherwise a file is in the place of a directory
			length, _ := strconv.Atoi(f[1])
			out = out[min(length+1, len(out)):]
		case len(f) == 3 && f[1] == "blob":
			blobs[i].Size, _ = strconv.Atoi(f[2])
			if blobs[i].Size > most {
				continue
			}
			if blobs[i].Unread = blobs[i].Size > room; blobs[i].Unread {
				continue
			}
			room -= blobs[i].Size
			asked.WriteString(f[0] + "\n")
			small = append(small, i)
		}
	}
	read, err := m.git.objects(ctx, asked.String())
	if err != nil {
		return nil, err
	}
	if len(read) != len(small) {
		return nil, errOutput
	}
	for n, i := range small {
		blobs[i].Content = read[n].content
	}
	return blobs, nil
}
