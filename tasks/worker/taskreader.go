package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// taskReader decodes the tasks of records and gets their briefs from their sources. It is safe for concurrent use.
type taskReader struct {
	store   *store.Store
	sources []tasks.Source
	log     *slog.Logger
}

// read decodes the task of a record and returns its source.
func (d *taskReader) read(rec store.Record) (tasks.Task, tasks.Source, error) {
	t, err := tasks.ReadTask(rec)
	if bad, ok := errors.AsType[*tasks.UnreadableError](err); ok {
		d.noteUnreadable(context.Background(), bad)
		return t, nil, err
	}
	for _, s := range d.sources {
		if s.Name() == t.Source {
			return t, s, nil
		}
	}
	return t, nil, fmt.Errorf("task %s is from source %q, which this worker does not have", t.ID, t.Source)
}

// noteUnreadable records that a task cannot be read, for operators.
func (d *taskReader) noteUnreadable(ctx context.Context, e *tasks.UnreadableError) {
	if err := d.store.Doctor.NoteUnreadable(ctx, map[string]string{e.ID: e.Why}); err != nil {
		d.log.Warn("note unreadable record", "run", e.ID, "err", err)
	}
}

// brief returns the source's brief of a task, with the pictures that are stored for the task.
func (d *taskReader) brief(ctx context.Context, s tasks.Source, t tasks.Task, files string) (tasks.Brief, error) {
	b, err := s.Brief(ctx, t, files)
	if err != nil {
		return tasks.Brief{}, fmt.Errorf("brief: %w", err)
	}
	if len(t.Pictures) == 0 {
		return b, nil
	}
	data, err := d.store.Pictures.Read(ctx, t.ID)
	if err != nil {
		return tasks.Brief{}, err
	}
	for i, p := range t.Pictures {
		if i >= len(data) {
			b.Prompt.Text = cmp.Or(b.Prompt.Text, t.Prompt) + fmt.Sprintf("\n\n(The picture %q came with this message but is no longer stored.)", p.Name)
			continue
		}
		b.Prompt.Files = append(b.Prompt.Files, agent.File{Name: p.Name, Type: p.Type, Data: data[i]})
	}
	return b, nil
}
