package githubfake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Deleted as the content of a file removes it.
const Deleted = "\x00deleted"

// commit writes one commit on a branch with a single fast-import. The branch
// is started from (or thrown back to) from, when from is not empty.
func (s *Server) commit(dir, branch, from string, files map[string]string, msg string) (string, error) {
	parent := s.resolve(dir, branch)
	if from != "" {
		if parent = s.resolve(dir, from); parent == "" {
			return "", fmt.Errorf("commit on %s: no commit %s", branch, from)
		}
	}
	msg = strings.TrimSuffix(msg, "\n") + "\n" // as all commits have it, GitHub's own too
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/%s\ncommitter Octo Cat <octocat@example.com> %d +0000\ndata %d\n%s\n",
		branch, s.cfg.Now().Unix(), len(msg), msg) // no author line: the committer is both
	if parent != "" {
		fmt.Fprintf(&in, "from %s\n", parent)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if content := files[path]; content == Deleted {
			fmt.Fprintf(&in, "D %s\n", quotePath(path))
		} else {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", quotePath(path), len(content), content)
		}
	}
	// With --done a stream that was cut off is an error, not half a commit.
	in.WriteString("done\n")
	if _, err := s.git(dir, in.String(), "fast-import", "--quiet", "--force", "--done"); err != nil {
		return "", fmt.Errorf("commit on %s: %w", branch, err)
	}
	return s.resolve(dir, branch), nil
}

// quotePath writes a path so that fast-import takes any character literally.
func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
