package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Measuring reads every directory. So a size is kept beside what was measured, with the time of its last use, and is
// taken from there until it has been used again.

// measured returns the size that measure finds, or the one that file has for the same time of use. What measure finds
// when ctx has ended is only a part, and is not kept.
func measured(ctx context.Context, file string, used time.Time, measure func() int64) int64 {
	var at, size int64
	text, _ := os.ReadFile(file) // without it, there is nothing to read from
	if _, err := fmt.Sscanf(string(text), "%d %d\n", &at, &size); err == nil && at == used.UnixNano() {
		return size
	}
	if size = measure(); ctx.Err() != nil {
		return size
	}
	// Without the file it is measured again.
	_ = os.WriteFile(file, fmt.Appendf(nil, "%d %d\n", used.UnixNano(), size), 0o600)
	return size
}

// threadSize returns the size of a thread's directories. While a run may be changing them, they are measured.
func threadSize(ctx context.Context, dir string, used time.Time) int64 {
	measure := func() int64 { return diskSize(ctx, dir) }
	if !exists(filepath.Join(dir, leftName)) {
		return measure()
	}
	return measured(ctx, filepath.Join(dir, sizeName), used, measure)
}

const sizeName = ".size"

// size returns the size of what belongs to a mirror.
func (m mirror) size(ctx context.Context) int64 {
	return measured(ctx, m.beside("size"), m.fetched(), func() (total int64) {
		for _, ext := range mirrorExts {
			total += diskSize(ctx, m.beside(ext[1:]))
		}
		return total
	})
}

// diskSize returns the disk usage of the files, each at most its length, without following links. A sparse file may be
// much longer.
func diskSize(ctx context.Context, dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // skip what is unreadable or gone by now
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			total += taken(info)
		}
		return ctx.Err()
	})
	return total
}

// blockSize is the unit of stat(2) on every file system.
const blockSize = 512

func taken(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), st.Blocks*blockSize)
	}
	return info.Size()
}
