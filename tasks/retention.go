package tasks

import (
	"slices"
	"time"
)

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
