package door

import (
	"context"
	"fmt"
	"os/exec"
)

// Build puts programs of the repository, whose top is root, into dir. Go keeps what `go run` has linked, so that one
// test links them for all.
func Build(ctx context.Context, root, dir string, programs ...string) error {
	for _, name := range programs {
		cmd := exec.CommandContext(ctx, "go", "run", "-buildvcs=false", "-exec", "cp --target-directory="+dir, "./cmd/"+name)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	return nil
}
