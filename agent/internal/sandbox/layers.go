package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/keeper"
)

// Layer is a directory that a run may change although others use it too: its changes are kept apart.
type Layer struct {
	Lower   string // what the run finds, which nothing changes; empty: an empty directory
	Changes string // a directory for the changes; the next run with it finds them. One run may have it at a time
	At      string // where the run sees both: a directory that exists; empty: its home
}

// Upper returns the directory with the changes themselves.
func (l Layer) Upper() string { return filepath.Join(l.Changes, "upper") }

// overlay returns the mount that shows the layer.
func (l Layer) overlay() keeper.Overlay {
	return keeper.Overlay{
		Lower: l.Lower, Upper: l.Upper(), Work: filepath.Join(l.Changes, "work"),
		At: filepath.Join(l.Changes, "merged"),
	}
}

// layers prepares the layers of a run. It returns bubblewrap's further mounts, and the overlays that exist before.
func (b *Bwrap) layers(ctx context.Context, run Run) (mounts []mount, overlays []keeper.Overlay, err error) {
	if run.SeenAs != "" {
		mounts = append(mounts, mount{at: run.SeenAs, how: "--bind", from: run.Dir})
	}
	for _, l := range run.Layers {
		overlay, shown, err := b.layer(ctx, l)
		if err != nil {
			return nil, nil, err
		}
		if overlay != nil {
			overlays = append(overlays, *overlay)
		}
		mounts = append(mounts, mount{at: cmp.Or(l.At, insideHome), how: "--bind", from: shown})
		if inside, below := strings.CutPrefix(l.At, run.Dir+"/"); below && run.SeenAs != "" {
			mounts = append(mounts, mount{at: filepath.Join(run.SeenAs, inside), how: "--bind", from: shown})
		}
	}
	return mounts, overlays, nil
}

// copyLayers copies the layers of a run without a sandbox to where it works, and returns its home; empty: its own. What
// a run finds in the place of a layer stays as it is.
func copyLayers(ctx context.Context, run Run) (home string, err error) {
	for _, l := range run.Layers {
		if l.At == "" {
			home, err = l.Upper(), l.copy(ctx)
		} else if found, readErr := os.ReadDir(l.At); readErr == nil && len(found) == 0 {
			err = copyAll(ctx, l.Lower, l.At)
		}
		if err != nil {
			return "", fmt.Errorf("set up the environment: %w", err)
		}
	}
	return home, nil
}

// layer prepares the directories of a layer. It returns the overlay to mount, or nil if none exists, and the directory
// to show to the run.
func (b *Bwrap) layer(ctx context.Context, l Layer) (*keeper.Overlay, string, error) {
	overlay, err := b.overlay(ctx, l)
	if err != nil {
		return nil, "", fmt.Errorf("set up the environment: %w", err)
	}
	if overlay != nil {
		return overlay, overlay.At, nil
	}
	if err := l.copy(ctx); err != nil {
		return nil, "", fmt.Errorf("set up the environment: %w", err)
	}
	return nil, l.Upper(), nil
}

// overlay makes the directories of a layer's overlay. It returns nil if there is nothing below, or no overlay.
func (b *Bwrap) overlay(ctx context.Context, l Layer) (*keeper.Overlay, error) {
	if err := os.MkdirAll(l.Changes, 0o700); err != nil || l.Lower == "" {
		return nil, err
	}
	possible, err := b.hasOverlays(ctx, l.Changes)
	if err != nil || !possible {
		return nil, err
	}
	o := l.overlay()
	for _, dir := range []string{o.Upper, o.Work, o.At} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return &o, nil
}

// copy copies everything below to the changes, once: for runs without a sandbox, and for file systems and kernels that
// have no overlays.
func (l Layer) copy(ctx context.Context) error {
	if err := os.MkdirAll(l.Changes, 0o700); err != nil || l.Lower == "" {
		return errors.Join(err, os.MkdirAll(l.Upper(), 0o700))
	}
	done := filepath.Join(l.Changes, "copied")
	if _, err := os.Lstat(done); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Not where an earlier attempt was interrupted: it may have left directories that cannot be removed like that.
	fresh, err := os.MkdirTemp(l.Changes, "copy-")
	if err != nil {
		return err
	}
	if err := copyAll(ctx, l.Lower, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, l.Upper()); err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o600)
}

// copyAll copies the content of a directory. Where files can share their blocks, that costs little.
func copyAll(ctx context.Context, from, to string) error {
	cmd := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto", "--", from+"/.", to)
	if _, err := keeper.Output(cmd); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

// hasOverlays reports whether overlays can be mounted below dir. The error says that ctx has ended.
func (b *Bwrap) hasOverlays(ctx context.Context, dir string) (bool, error) {
	_, why := b.overlays.Find(ctx, func(ctx context.Context) (_ struct{}, why *Unavailable) {
		if err := b.cfg.CheckOverlays(ctx, dir); err != nil {
			why = &Unavailable{Problem: err.Error()}
		}
		return struct{}{}, why
	})
	if why == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	b.copies.Do(func() { b.cfg.Log.Warn("environments are copied for each thread", "why", why.Problem) })
	return false, nil
}
