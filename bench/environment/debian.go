package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// debian downloads Debian's packages and extracts each into a directory of its name below root. Nothing is installed.
func (b *bench) debian(ctx context.Context, packages []string) (root string, err error) {
	if root, err = os.MkdirTemp(b.dir, "debian-"); err != nil {
		return "", fmt.Errorf("create directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"download"}, packages...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("download Debian's packages: %w (after apt-get update it may succeed)\n%s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(root, "*.deb"))
	if err != nil {
		return "", fmt.Errorf("download Debian's packages: %w", err)
	}
	for _, file := range archives {
		name, _, _ := strings.Cut(filepath.Base(file), "_")
		cmd := exec.CommandContext(ctx, "dpkg-deb", "-x", file, filepath.Join(root, name))
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("extract %s: %w (%s)", filepath.Base(file), err, out)
		}
	}
	return root, nil
}
