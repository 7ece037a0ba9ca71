package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// nameStashes gives all stash entries names; only the latest has one, and fetch takes what has one.
func (s *shadow) nameStashes(ctx context.Context) error {
	found, err := s.git.run(ctx, "for-each-ref", "refs/stash")
	if err != nil || found == "" {
		return err
	}
	out, err := s.git.run(ctx, "rev-list", "--walk-reflogs", "refs/stash")
	if err != nil {
		return err
	}
	return s.name(ctx, "stash", strings.Fields(out))
}

// nameLost gives names to what only reflogs know, such as a commit before it was amended: a bundle must name something, and whoever has it
// looks for names.
func (s *shadow) nameLost(ctx context.Context) error {
	out, err := s.git.run(ctx, "rev-list", "--parents", "--reflog", "--not", "HEAD", "--all", "--alternate-refs")
	if err != nil {
		return err
	}
	var lost []string
	parents := map[string]bool{}
	for line := range strings.Lines(out) { // "<commit> <parent>…"
		commits := strings.Fields(line)
		lost = append(lost, commits[0])
		for _, sha := range commits[1:] {
			parents[sha] = true
		}
	}
	return s.name(ctx, "lost", slices.DeleteFunc(lost, func(sha string) bool { return parents[sha] }))
}

// name makes a ref of each commit: refs/errand/<kind>/0, 1, …
func (s *shadow) name(ctx context.Context, kind string, commits []string) error {
	var refs strings.Builder
	for n, sha := range commits {
		fmt.Fprintf(&refs, "create refs/errand/%s/%d %s\n", kind, n, sha)
	}
	_, err := s.git.reading(refs.String()).run(ctx, "update-ref", "--stdin")
	return err
}
