package tasks

import "context"

// Talked is a conversation as far as it is remembered: the newest tasks of a thread in which people talk, at most n, oldest first, in
// whatever state. One whose thread nobody knows is empty.
func (d *Desk) Talked(ctx context.Context, thread string, n int) ([]Status, error) {
	thread, err := d.store.Threads.Resolve(ctx, thread)
	if err != nil {
		return nil, err
	}
	records, err := d.store.Threads.LatestTasks(ctx, thread, n)
	if err != nil {
		return nil, err
	}
	list := make([]Status, len(records))
	for i, rec := range records {
		if list[i], err = d.complete(ctx, rec); err != nil {
			return nil, err
		}
	}
	return list, nil
}
