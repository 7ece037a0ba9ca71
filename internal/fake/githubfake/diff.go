package githubfake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What GitHub refuses to compute: a diff over 300 files or 20,000 lines is a
// 406, a file's patch over 500 KB is left out ("limits for viewing content and
// diffs" in its documentation).
const (
	maxDiffFiles = 300
	maxDiffLines = 20_000
	maxPatch     = 500_000
)

// fileDiff is one file of a pull request.
type fileDiff struct {
	path, previous string
	status         string // added, removed, modified, renamed
	sha            string // of the blob; of the old one when removed
	added, removed int
	patch          string // from the first @@ on; "" for binary and huge files
}

var diffFlags = []string{"diff", "--no-color", "--no-ext-diff", "--find-renames", "--full-index"}

// diff is the text of a pull request's diff: from the merge base to the head.
func (s *Server) diff(dir, base, head string) (string, error) {
	return s.git(dir, "", slices.Concat(diffFlags, []string{base + "..." + head})...)
}

// files lists what a pull request changes, in git's order.
func (s *Server) files(dir, base, head string) ([]fileDiff, error) {
	raw, err := s.git(dir, "", slices.Concat(diffFlags, []string{
		"--raw", "--numstat", "-z", "--abbrev=40", base + "..." + head,
	})...)
	if err != nil {
		return nil, err
	}
	all, err := parseRaw(raw)
	if err != nil {
		return nil, err
	}
	text, err := s.diff(dir, base, head)
	if err != nil {
		return nil, err
	}
	// Raw records give names no quoting can spoil, the text gives the patches.
	// Content lines start with a space, + or -, so this cuts only at headers.
	parts := strings.Split("\n"+text, "\ndiff --git ")[1:]
	if len(parts) != len(all) {
		return nil, fmt.Errorf("diff %s...%s: %d patches of %d files", base, head, len(parts), len(all))
	}
	for i, part := range parts {
		if at := strings.Index(part, "\n@@ "); at >= 0 && len(part)-at <= maxPatch {
			all[i].patch = strings.TrimSuffix(part[at+1:], "\n")
		}
	}
	return all, nil
}

// parseRaw reads `git diff --raw --numstat -z`: first all raw records, then
// all counts, both in the same order.
func parseRaw(out string) (all []fileDiff, err error) {
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	next := func() (f string) {
		if len(fields) > 0 {
			f, fields = fields[0], fields[1:]
		}
		return f
	}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		// :oldmode newmode oldsha newsha status
		meta := strings.Fields(next())
		if len(meta) != 5 {
			return nil, fmt.Errorf("parse diff: record %q", meta)
		}
		f := fileDiff{sha: meta[3], path: next(), status: "modified"}
		switch meta[4][0] {
		case 'A':
			f.status = "added"
		case 'D':
			f.status, f.sha = "removed", meta[2]
		case 'R':
			f.status, f.previous, f.path = "renamed", f.path, next()
		}
		all = append(all, f)
	}
	for i := range all {
		// added TAB removed TAB path; a rename has no path here but two more fields
		counts := strings.SplitN(next(), "\t", 3)
		if len(counts) != 3 {
			return nil, fmt.Errorf("parse diff: counts %q", counts)
		}
		all[i].added, _ = strconv.Atoi(counts[0]) // "-" for binary: none
		all[i].removed, _ = strconv.Atoi(counts[1])
		if counts[2] == "" {
			next()
			next()
		}
	}
	return all, nil
}

// commits lists the commits that head has and base has not, oldest first.
func (s *Server) commits(dir, base, head string) ([]string, error) {
	out, err := s.git(dir, "", "rev-list", "--reverse", base+".."+head)
	return strings.Fields(out), err
}

// mergeable reports whether head merges into base without a conflict.
func (s *Server) mergeable(dir, base, head string) bool {
	// Exit status 1 is a conflict; merge-tree touches no branch and no worktree.
	_, err := s.git(dir, "", "merge-tree", "--write-tree", "--no-messages", base, head)
	return err == nil
}
