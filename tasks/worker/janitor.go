package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/workspace"
)

// Removing a thread's directories blocks its tasks for at most lockFor, of which saving its work may take saveFor and
// moving them Timing.Discard.
const (
	lockFor = 6 * time.Minute
	saveFor = 5 * time.Minute
)

// janitor removes old data from this worker's disk.
type janitor struct {
	store      *store.Store
	workspace  *workspace.Workspace
	logDir     string // of the runs; "": nothing is removed
	retention  Retention
	discardFor time.Duration // Timing.Discard
	log        *slog.Logger
}

// tidy removes data from the disk that exceeds the retention. If several workers share a disk, one of them does it.
// It removes nothing of a thread with a waiting or running task, and no task of the thread can start meanwhile: the
// store's lock decides, and without it nothing is removed.
func (j *janitor) tidy(ctx context.Context) {
	j.alone(ctx, func() error {
		// Threads first: the work that is saved from them counts as logs.
		return errors.Join(j.discardOutdated(ctx), j.tidyThreads(ctx), j.workspace.Empty(), j.tidyLogs(ctx),
			j.tendMirrors(ctx), j.store.SweepObjects(ctx))
	})
}

// outdatedEvery is the time between two calls of tidyOutdated.
const outdatedEvery = time.Minute

// tidyOutdated removes the environments that no run will use again. It runs often: an operator who asks for it may need
// the disk.
func (j *janitor) tidyOutdated(ctx context.Context) {
	j.alone(ctx, func() error { return errors.Join(j.discardOutdated(ctx), j.workspace.Empty()) })
}

// alone calls do unless another worker tidies up the same disk.
func (j *janitor) alone(ctx context.Context, do func() error) {
	if j.logDir == "" {
		return
	}
	if _, err := j.workspace.Alone(do); err != nil && ctx.Err() == nil {
		j.log.Warn("tidy up", "err", err)
	}
}

// tidyThreads handles threads, mirrors and environments together, because they share a bound. A mirror can go when its
// last clone has gone.
func (j *janitor) tidyThreads(ctx context.Context) error {
	if j.retention.Threads == (Bound{}) {
		return nil // do not scan the disk for nothing
	}
	threads, err := j.workspace.Threads(ctx)
	if err != nil {
		return err
	}
	var all []diskItem
	for _, t := range threads {
		all = append(all, diskItem{t.Used, t.Size, func() (bool, error) {
			return j.whileIdle(ctx, t.Name, func() (bool, error) { return j.discard(ctx, t) })
		}})
	}
	mirrors, err := j.workspace.Mirrors(ctx)
	if err != nil {
		return err
	}
	for _, m := range mirrors {
		all = append(all, diskItem{m.Used, m.Size, func() (bool, error) { return j.discardMirror(ctx, m) }})
	}
	environments, err := workspace.EnvironmentsOf(j.workspace).List()
	if err != nil {
		return err
	}
	for _, e := range environments {
		all = append(all, diskItem{e.Used, e.Size, func() (bool, error) { return j.discardEnvironment(ctx, e) }})
	}
	return j.retention.Threads.apply(time.Now(), all)
}

// tendMirrors keeps the mirrors small that are left. What fails for one says nothing about the others.
func (j *janitor) tendMirrors(ctx context.Context) error {
	mirrors, err := j.workspace.Mirrors(ctx)
	if err != nil {
		return err
	}
	for _, m := range mirrors {
		err := j.workspace.Tend(ctx, m.Repo)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		logline.Warn(j.log, err, "tend mirror", "repo", m.Repo)
	}
	return nil
}

// discardOutdated discards the environments that no run will use again, because an operator has said so.
func (j *janitor) discardOutdated(ctx context.Context) error {
	environments, err := workspace.EnvironmentsOf(j.workspace).List()
	if err != nil || len(environments) == 0 {
		return err
	}
	rebuilds, err := j.store.Rebuilds.All(ctx)
	if err != nil {
		return err
	}
	for _, e := range environments {
		if rebuilds[strings.ToLower(e.Repo)].Outdated(e.ID) {
			if _, err := j.discardEnvironment(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *janitor) discardEnvironment(ctx context.Context, e workspace.Environment) (bool, error) {
	gone, err := workspace.EnvironmentsOf(j.workspace).Discard(e)
	return j.discarded(ctx, gone, err, "old environment", "repo", e.Repo, "used", e.Used, "bytes", e.Size)
}

func (j *janitor) discardMirror(ctx context.Context, m workspace.Mirror) (bool, error) {
	gone, err := j.workspace.DiscardMirror(ctx, m) // an error means that it is damaged; the next checkout repairs it
	return j.discarded(ctx, gone, err, "old mirror", "repo", m.Repo, "used", m.Used, "bytes", m.Size)
}

// discarded logs the result of an attempt to remove something, and returns it without the error: others may go.
func (j *janitor) discarded(ctx context.Context, gone bool, err error, what string, args ...any) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	logline.Warn(j.log, err, "discard data", append(args, "what", what)...)
	if err == nil && gone {
		j.log.Info("data discarded", append(args, "what", what)...)
	}
	return gone, nil
}

// whileIdle calls do while it holds the lock of a thread without waiting or running tasks. It returns false if it
// cannot get the lock.
func (j *janitor) whileIdle(ctx context.Context, thread string, do func() (bool, error)) (bool, error) {
	lock, err := j.store.Threads.Lock(ctx, thread, lockFor)
	if errors.Is(err, store.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() {
		err := lock.Release(context.WithoutCancel(ctx)) // after an error the lock expires
		logline.Warn(j.log, err, "release thread", "thread", thread)
	}()
	return do()
}

// discard removes a thread's directories after it has saved the thread's work. If the work cannot be saved, the
// directories stay.
func (j *janitor) discard(ctx context.Context, t workspace.Thread) (bool, error) {
	saving, cancel := context.WithTimeout(ctx, saveFor)
	defer cancel()
	args := []any{"thread", t.Name, "dir", t.Dir, "used", t.Used, "bytes", t.Size}
	saved, err := j.workspace.Save(saving, t.Name, j.logDir)
	if err != nil {
		return j.discarded(ctx, false, fmt.Errorf("save its work: %w", err), "old thread", args...)
	}
	moving, stop := context.WithTimeout(ctx, j.discardFor)
	defer stop()
	gone, err := j.workspace.Discard(moving, t)
	return j.discarded(ctx, gone, err, "old thread", append(args, "saved", saved)...)
}

func (j *janitor) tidyLogs(ctx context.Context) error {
	entries, err := os.ReadDir(j.logDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	var all []diskItem
	for _, e := range entries {
		id, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(j.logDir, e.Name())
		k := diskItem{used: info.ModTime(), size: info.Size()}
		switch {
		case slices.Contains(workspace.SavedExts(), ext):
			k.remove = func() (bool, error) { return remove(path) }
		case slices.Contains([]string{"." + tasks.PeopleLog, "." + tasks.RawLog}, ext) && tasks.ValidID(id):
			k.remove = func() (bool, error) { return j.removeLog(ctx, id, path) }
		default:
			continue // not errand's file
		}
		all = append(all, k)
	}
	return j.retention.Logs.apply(time.Now(), all)
}

// removeLog removes a log if its task has ended or expired.
func (j *janitor) removeLog(ctx context.Context, id, path string) (bool, error) {
	rec, err := j.store.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return remove(path)
	}
	if err != nil {
		return false, err
	}
	return j.whileIdle(ctx, rec.Thread, func() (bool, error) { return remove(path) })
}

func remove(path string) (bool, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove log: %w", err)
	}
	return true, nil
}

// Retention limits how long a worker's disk keeps data that is no longer used.
type Retention struct {
	Logs    Bound // logs of runs, and work saved from clones
	Threads Bound // directories of threads with their clones, and mirrors without clones
}

// Bound limits age and size; the oldest data goes first. 0 means no limit.
type Bound struct {
	Age  time.Duration // since the last use
	Size int64         // of all data together, in bytes
}

// diskItem is one item on the disk.
type diskItem struct {
	used time.Time
	size int64
	// remove removes the item. It returns false if the item must stay. An error stops the cleanup.
	remove func() (bool, error)
}

// apply removes the items that exceed the bound.
func (b Bound) apply(now time.Time, all []diskItem) error {
	slices.SortStableFunc(all, func(x, y diskItem) int { return x.used.Compare(y.used) })
	total := int64(0)
	for _, k := range all {
		total += k.size
	}
	for _, k := range all {
		old, large := b.Age > 0 && now.Sub(k.used) > b.Age, b.Size > 0 && total > b.Size
		if !old && !large {
			return nil // the rest is newer
		}
		removed, err := k.remove()
		if err != nil {
			return err
		}
		if removed {
			total -= k.size
		}
	}
	return nil
}
