package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// Clearing a thread's directories away keeps its tasks from starting for at most lockFor, of which saving its work may take saveFor, and moving
// them Timing.Discard.
const (
	lockFor = 6 * time.Minute
	saveFor = 5 * time.Minute
)

// tidy removes from the disk what exceeds the retention. Of several workers on one disk one does it. Nothing is removed that belongs to a
// thread of which a task waits or runs, and none can begin while it is: the store has the word, and without it nothing goes.
func (w *Worker) tidy(ctx context.Context) {
	if w.cfg.LogDir == "" {
		return
	}
	_, err := w.workspace.Alone(func() error {
		// Threads first: what they leave of their work counts among the logs.
		return errors.Join(w.tidyThreads(ctx), w.workspace.Empty(), w.tidyLogs(ctx))
	})
	if err != nil && ctx.Err() == nil {
		w.log.Warn("tidy up", "worker", w.id, "err", err)
	}
}

// tidyThreads takes threads and mirrors together: a mirror goes when the last of its clones has.
func (w *Worker) tidyThreads(ctx context.Context) error {
	if w.cfg.Retention.Threads == (Bound{}) {
		return nil // spare the disk the reading
	}
	threads, err := w.workspace.Threads(ctx)
	if err != nil {
		return err
	}
	var all []kept
	for _, t := range threads {
		all = append(all, kept{t.Used, t.Size, func() (bool, error) {
			return w.whileIdle(ctx, t.Name, func() (bool, error) { return w.discard(ctx, t) })
		}})
	}
	mirrors, err := w.workspace.Mirrors(ctx)
	if err != nil {
		return err
	}
	for _, m := range mirrors {
		all = append(all, kept{m.Used, m.Size, func() (bool, error) { return w.discardMirror(ctx, m) }})
	}
	return w.cfg.Retention.Threads.apply(time.Now(), all)
}

func (w *Worker) discardMirror(ctx context.Context, m workspace.Mirror) (bool, error) {
	gone, err := w.workspace.DiscardMirror(ctx, m)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil: // damaged; who needs it repairs it
		w.log.Warn("old mirror stays", "repo", m.Repo, "err", err)
	case gone:
		w.log.Info("old mirror removed", "repo", m.Repo, "used", m.Used, "bytes", m.Size)
	}
	return gone, nil
}

// whileIdle does something with a thread of which no task waits or runs, nor starts meanwhile; false when that is not to be had.
func (w *Worker) whileIdle(ctx context.Context, thread string, do func() (bool, error)) (bool, error) {
	lock, err := w.store.Threads.Lock(ctx, thread, lockFor)
	if errors.Is(err, store.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() {
		if err := lock.Release(context.WithoutCancel(ctx)); err != nil {
			w.log.Warn("release thread", "thread", thread, "err", err) // its time runs out
		}
		w.wakeNext(context.WithoutCancel(ctx), thread)
	}()
	return do()
}

// discard takes a thread's directories away, after its work was saved. When it cannot be, they stay.
func (w *Worker) discard(ctx context.Context, t workspace.Thread) (bool, error) {
	saving, cancel := context.WithTimeout(ctx, saveFor)
	defer cancel()
	saved, err := w.workspace.Save(saving, t.Name, w.cfg.LogDir)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		w.log.Warn("old thread stays, as its work cannot be saved", "thread", t.Name, "dir", t.Dir, "used", t.Used, "bytes", t.Size, "err", err)
		return false, nil
	}
	moving, stop := context.WithTimeout(ctx, w.timing.Discard)
	defer stop()
	gone, err := w.workspace.Discard(moving, t)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil: // somebody is in it, or it cannot be moved; others can
		w.log.Warn("old thread stays", "thread", t.Name, "dir", t.Dir, "used", t.Used, "bytes", t.Size, "err", err)
	case gone:
		w.log.Info("directories of old thread removed", "thread", t.Name, "used", t.Used, "bytes", t.Size, "saved", saved)
	}
	return gone, nil
}

func (w *Worker) tidyLogs(ctx context.Context) error {
	entries, err := os.ReadDir(w.cfg.LogDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	var all []kept
	for _, e := range entries {
		id, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(w.cfg.LogDir, e.Name())
		k := kept{used: info.ModTime(), size: info.Size()}
		switch {
		case slices.Contains(workspace.SavedExts(), ext):
			k.remove = func() (bool, error) { return remove(path) }
		case slices.Contains([]string{"." + tasks.PeopleLog, "." + tasks.RawLog}, ext) && tasks.ValidID(id):
			k.remove = func() (bool, error) { return w.removeLog(ctx, id, path) }
		default:
			continue // not ours
		}
		all = append(all, k)
	}
	return w.cfg.Retention.Logs.apply(time.Now(), all)
}

// removeLog removes a log of a task that has ended, or is gone.
func (w *Worker) removeLog(ctx context.Context, id, path string) (bool, error) {
	rec, err := w.store.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return remove(path)
	}
	if err != nil {
		return false, err
	}
	return w.whileIdle(ctx, rec.Thread, func() (bool, error) { return remove(path) })
}

func remove(path string) (bool, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("remove log: %w", err)
	}
	return true, nil
}

// Retention is how long a worker's disk keeps what is not used any more.
type Retention struct {
	Logs    Bound // logs of runs, and the work that was left in clones
	Threads Bound // directories of threads, with their clones, and the mirrors that no clone needs any more
}

// Bound limits what is kept of something, the oldest goes first. Zeros are no limits.
type Bound struct {
	Age  time.Duration // since it was used last
	Size int64         // of all of it, in bytes
}

// kept is one thing that takes room.
type kept struct {
	used time.Time
	size int64
	// remove tries to; false when it must stay. An error ends all.
	remove func() (bool, error)
}

// apply removes what exceeds the bound.
func (b Bound) apply(now time.Time, all []kept) error {
	slices.SortStableFunc(all, func(x, y kept) int { return x.used.Compare(y.used) })
	total := int64(0)
	for _, k := range all {
		total += k.size
	}
	for _, k := range all {
		old, large := b.Age > 0 && now.Sub(k.used) > b.Age, b.Size > 0 && total > b.Size
		if !old && !large {
			return nil // nor is what comes after it
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
