package workspace

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrBundle means that a bundle can never be restored: it is damaged, or the repository no longer has the commits that
// it builds on.
var ErrBundle = errors.New("the work cannot be restored")

// Bundle holds what a clone had at one moment and its mirror lacked. Everything but Data is plain data, to be stored
// beside Data.
type Bundle struct {
	Repo   string            `json:"repo"`
	Head   string            `json:"head"`             // SHA checked out
	Branch string            `json:"branch,omitempty"` // checked out; empty: HEAD is detached
	Refs   map[string]string `json:"refs,omitempty"`   // local branches and the stash, by full name
	// Work is a commit of the work tree. Its parent is a commit of the index, whose parent is Head. It is empty if
	// nothing was uncommitted or the changes were too large.
	Work string `json:"work,omitempty"`
	// Missing lists what was left out: file paths, a final count of further files, and git states such as a merge.
	Missing []string `json:"missing,omitempty"`
	Sum     string   `json:"sum"` // SHA-256 of Data, in hex
	Data    []byte   `json:"-"`   // a git bundle; empty if the mirror has everything
}

// maxNamed is the number of missing files that are listed by name.
const maxNamed = 50

// short shortens a list of files for readers.
func short(names []string) []string {
	if more := len(names) - maxNamed; more > 0 {
		return append(slices.Clip(names[:maxNamed]), fmt.Sprintf("%d more files", more))
	}
	return names
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// open validates a bundle and returns the commits that it requires of the mirror, and its pack, if any.
func (b Bundle) open(repo string) (needs []string, pack []byte, err error) {
	// Fields that become git arguments must have the form that Snapshot gives them.
	ok := b.Repo == repo && fullSHA.MatchString(b.Head) && (b.Work == "" || fullSHA.MatchString(b.Work)) && !notInRef.MatchString(b.Branch)
	tips := []string{b.Head}
	for name, sha := range b.Refs {
		ok = ok && ownRef.MatchString(name) && !notInRef.MatchString(name) && fullSHA.MatchString(sha)
		tips = append(tips, sha)
	}
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("%w: it is not of %s", ErrBundle, repo)
	case b.Sum != sum(b.Data):
		return nil, nil, fmt.Errorf("%w: it is damaged", ErrBundle)
	case len(b.Data) == 0:
		return tips, nil, nil
	}
	// gitformat-bundle(5): lines "-<needed> <subject>" and "<held> <ref>", an empty one, the pack.
	header, pack, found := bytes.Cut(b.Data, []byte("\n\n"))
	lines, v2 := strings.CutPrefix(string(header), "# v2 git bundle\n")
	if !found || !v2 {
		return nil, nil, fmt.Errorf("%w: it is no git bundle", ErrBundle)
	}
	held := map[string]bool{}
	for line := range strings.Lines(lines) {
		sha, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if needed, found := strings.CutPrefix(sha, "-"); found {
			needs = append(needs, needed)
		} else {
			held[sha] = true
		}
	}
	needs = append(needs, slices.DeleteFunc(tips, func(sha string) bool { return held[sha] })...)
	slices.Sort(needs)
	return slices.Compact(needs), pack, nil
}
