// Package session manages the directories of a run, and the session that the CLI saves in them.
//
// [Make] creates the directories and locks them, so that [Sweep] leaves them alone as long as this process lives.
// [Dirs.Restore] puts a saved session where the CLI looks for it, and [Dirs.Save] packs it again. Functions may be
// called from any goroutine.
package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/internal/transcript"
)

// Restore writes a saved session to where the CLI looks for it when it runs in workDir.
func (d Dirs) Restore(a transcript.Archive, id, workDir string) error {
	return a.Place(d.Config, d.Inside().Config, id, workDir)
}

// Save packs the session as the CLI has saved it so far; nil if none can be used. The CLI may be writing to it, and so
// may its tools: Save follows no link, does not wait for a pipe, and bounds all sizes and numbers. It removes the
// secrets of the redactor, which may be nil. The error says that there is too much to look for a session.
func (d Dirs) Save(id string, secrets *redact.Redactor) ([]byte, error) {
	top, err := os.Open(d.Root)
	if err != nil {
		return nil, nil
	}
	defer top.Close()
	config, err := openAt(top, filepath.Base(d.Config), syscall.O_DIRECTORY) // the run may have put a link there
	if err != nil {
		return nil, nil
	}
	defer config.Close()
	project, err := findProject(config, id)
	if err != nil || project == nil {
		return nil, err
	}
	defer project.Close()
	lines, err := readFile(project, id+".jsonl", transcript.MaxSize)
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // the CLI may have written part of the last one
	if err != nil || len(lines) == 0 {
		return nil, nil
	}
	c := collector{room: transcript.MaxSize - len(lines)}
	c.collect(project, id, "", 0)
	home := filepath.Join(d.Inside().Config, "projects", filepath.Base(project.Name()), id)
	a := transcript.Archive{
		Home: home, Files: append([]transcript.File{{Name: transcript.Conversation, Content: lines}}, c.files...),
	}
	for i, f := range a.Files {
		a.Files[i].Content = secrets.Bytes(f.Content)
	}
	data, err := a.Pack()
	if len(data) > transcript.MaxPacked {
		a.Files = a.Files[:1]
		data, err = a.Pack()
	}
	if err != nil {
		return nil, nil
	}
	return data, nil
}

// findProject opens the directory with the conversation; nil if there is none.
func findProject(config *os.File, id string) (*os.File, error) {
	projects, err := openAt(config, "projects", syscall.O_DIRECTORY)
	if err != nil {
		return nil, nil
	}
	defer projects.Close()
	entries, err := list(projects, transcript.MaxFiles)
	if errors.Is(err, errTooMany) {
		return nil, fmt.Errorf("find the session: %w", err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		dir, err := openAt(projects, e.Name(), syscall.O_DIRECTORY)
		if err != nil {
			continue
		}
		var s unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), id+".jsonl", &s, unix.AT_SYMLINK_NOFOLLOW) == nil {
			return dir, nil
		}
		_ = dir.Close()
	}
	return nil, nil
}

// openAt opens an entry of a directory for reading. It follows no link, and opens a pipe without its other end. However
// deep the directory is, only the entry's name is resolved.
func openAt(dir *os.File, name string, flags int) (*os.File, error) {
	const always = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, flags|always, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name)), nil
}

// list returns what is in a directory. If that is more than limit, it returns a part of it and errTooMany: the tools of
// a run may have made any number.
func list(dir *os.File, limit int) ([]fs.DirEntry, error) {
	entries, err := dir.ReadDir(limit + 1)
	if len(entries) > limit {
		return entries[:limit], errTooMany
	}
	return entries, err
}

// collector reads the files in the directory of a session, which need not exist.
type collector struct {
	room  int // bytes that may still be read
	seen  int // files and directories
	tried int // files, pipes, links and the like
	files []transcript.File
}

// collect reads the files in an entry of parent, which is depth directories below that of the session, as far as there
// is room for them. below is its path in that of the session. It leaves out what cannot be read.
func (c *collector) collect(parent *os.File, name, below string, depth int) {
	dir, err := openAt(parent, name, syscall.O_DIRECTORY)
	if err != nil {
		return
	}
	defer dir.Close()
	entries, _ := list(dir, maxSeen-c.seen)
	c.seen += len(entries)
	for _, e := range entries {
		named := path.Join(below, e.Name())
		switch {
		case c.tried >= transcript.MaxFiles-1:
			return
		case len(named) > maxPath:
		case e.IsDir():
			if depth < maxDepth {
				c.collect(dir, e.Name(), named, depth+1)
			}
		case named != transcript.Conversation: // which would pass for the conversation
			c.tried++
			c.read(dir, e, named)
		}
	}
}

// read reads an entry of dir if it is a regular file. named is its path in the directory of the session.
func (c *collector) read(dir *os.File, e fs.DirEntry, named string) {
	if !e.Type().IsRegular() {
		return
	}
	if content, err := readFile(dir, e.Name(), c.room); err == nil {
		c.room -= len(content)
		c.files = append(c.files, transcript.File{Name: named, Content: content})
	}
}

// readFile reads a regular file of at most limit bytes.
func readFile(dir *os.File, name string, limit int) ([]byte, error) {
	f, err := openAt(dir, name, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > int64(limit) {
		return nil, errors.New("not a file of a session")
	}
	return io.ReadAll(io.LimitReader(f, info.Size()))
}

// Bounds of what Save looks at.
const (
	maxSeen  = 40_000 // files and directories
	maxDepth = 16     // directories below that of the session; the CLI has two
	maxPath  = 512    // bytes of a path in that of the session
)

var errTooMany = fmt.Errorf("there are more than %d directories beside it", transcript.MaxFiles)
