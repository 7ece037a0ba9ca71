package workspace

import (
	"context"
	"errors"
	"strings"
)

// reveal makes git look again at files that an agent told it not to look at. Those that hide has marked stay so: what is there in their place
// is ours. So do those that are not there: a sparse checkout leaves them out.
func (s *shadow) reveal(ctx context.Context) error {
	out, err := s.git.run(ctx, "ls-files", "-v", "-z")
	if _, failed := errors.AsType[*gitError](err); failed {
		return nil // an index that is none; changes makes one of HEAD
	} else if err != nil {
		return err
	}
	var names strings.Builder
	for entry := range strings.SplitSeq(out, "\x00") { // "H name"; S for one to be skipped, small for one that is assumed to be as it was
		tag, name, found := strings.Cut(entry, " ")
		if !found || tag != "S" && tag == strings.ToUpper(tag) || isAgentConfig(name) {
			continue
		}
		if _, err := s.files.Lstat(name); err == nil {
			names.WriteString(name + "\x00")
		}
	}
	// One at a time: each of the options turns off the other.
	for _, option := range []string{"--no-assume-unchanged", "--no-skip-worktree"} {
		if names.Len() > 0 && err == nil {
			_, err = s.git.reading(names.String()).run(ctx, "update-index", option, "-z", "--stdin")
		}
	}
	return err
}
