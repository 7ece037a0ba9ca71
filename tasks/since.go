package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/workspace"
)

// since leaves in the thread's directory what the change has become since an earlier head, and says so to the agent. Where that head cannot be
// had any more there is only the whole change.
func (w *Worker) since(ctx context.Context, c workspace.Clone, earlier, files string) (about string, err error) {
	s, err := w.workspace.Since(ctx, c, earlier, diffLimit)
	if errors.Is(err, workspace.ErrRef) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	path, err := leave(files, "since.diff", s.Text)
	if err != nil {
		return "", err
	}
	about = fmt.Sprintf(" What has changed in it since %s, an earlier head, is in %s", earlier, path)
	if s.Truncated {
		about += " (only the beginning)"
	}
	if s.Rewritten {
		about += "; its history was rewritten since, which is why git range-diff may come first there"
	}
	return about + ".", nil
}

// leave writes a file into the thread's directory. An agent may have written there before: os.Root does not follow its links out.
func leave(files, name, text string) (path string, err error) {
	root, err := os.OpenRoot(files)
	if err != nil {
		return "", fmt.Errorf("open directory for files: %w", err)
	}
	defer root.Close()
	_ = root.Remove(name) // an earlier run's, perhaps a link
	if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return filepath.Join(files, name), nil
}
