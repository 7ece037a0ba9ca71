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
	"strings"
	"syscall"
)

// What the CLI keeps of a conversation is a file of JSON lines and, in a directory of the session's name beside it, the tool results
// that were too long for a message and the conversations of sub-agents (claude-cli.md §2). Both together are a Session's Data.

// maxSession bounds what a session has unpacked; one of hours has a few megabytes.
const maxSession = 64 << 20

// maxPacked bounds what it has packed: what others are willing to keep. If it is more, the conversation goes without the other files.
const maxPacked = 8 << 20

// Holds reports whether the conversation has something with that ID in it, such as a message that the CLI has taken up. It is there as a
// line of its own ("uuid") or as what was said into a turn ("source_uuid"). One that was only queued when the CLI was interrupted is
// named as well, as the "commandUuid" of what was thrown away (observed), and is not in it.
func (s Session) Holds(id string) bool {
	a, err := unpack(s.Data)
	return err == nil && bytes.Contains(a.files[0].content, []byte(`uuid":"`+id+`"`))
}

// Check reads the whole of Data. Its error says that the conversation cannot be resumed.
func (s Session) Check() error {
	_, err := s.archive()
	return err
}

func (s Session) archive() (archive, error) {
	a, err := unpack(s.Data)
	if err != nil {
		return a, fmt.Errorf("read session %s: %w", s.ID, err)
	}
	return a, nil
}

// project is the CLI's directory for what ran in dir, below that of its configuration: named after the path, all but letters and digits
// turned into dashes.
func project(dir string) string {
	return filepath.Join("projects", strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir))
}

// putSession writes a saved session where the CLI will look for it when it runs in dir. Where the conversation tells the agent of its
// own files, it is made to say where they are now. ClassSession says that it is none that could be resumed.
func (d runDirs) putSession(s Session, dir string) *Error {
	a, err := s.archive()
	if err != nil {
		return NewError(ClassSession, err.Error())
	}
	if err := d.putFiles(a, s.ID, project(dir)); err != nil {
		return NewError(ClassWorkspace, "restore session: "+err.Error())
	}
	return nil
}

func (d runDirs) putFiles(a archive, id, project string) error {
	place := filepath.Join(d.Config, project)
	if err := os.MkdirAll(place, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(place)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range a.files {
		if a.home != "" && path.Ext(f.name) == ".jsonl" {
			f.content = bytes.ReplaceAll(f.content, []byte(a.home+"/"), []byte(filepath.Join(d.seen().Config, project, id)+"/"))
		}
		name := path.Join(id, f.name)
		if f.name == conversation {
			name = id + ".jsonl"
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(name, f.content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// takeSession packs the session as the CLI has saved it so far; nil when there is none that can be used. The CLI may be writing to it,
// and so may its tools: no link leads out of the directory, no pipe holds us up, and no size is out of bounds.
func (d runDirs) takeSession(id string) []byte {
	root, err := os.OpenRoot(d.Config)
	if err != nil {
		return nil
	}
	defer root.Close()
	found, err := fs.Glob(root.FS(), "projects/*/"+id+".jsonl")
	if err != nil || len(found) == 0 {
		return nil
	}
	lines, err := readFile(root, found[0], maxSession)
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // of the last one the CLI may have written only the beginning
	if err != nil || len(lines) == 0 {
		return nil
	}
	own := strings.TrimSuffix(found[0], ".jsonl")
	a := archive{home: filepath.Join(d.seen().Config, own), files: []sessionFile{{conversation, lines}}}
	a.files = append(a.files, filesIn(root, own, maxSession-len(lines))...)
	data, err := a.pack()
	if len(data) > maxPacked {
		a.files = a.files[:1]
		data, err = a.pack()
	}
	if err != nil {
		return nil
	}
	return data
}

// filesIn reads the files below dir, which need not exist, as far as there is room for them.
func filesIn(root *os.Root, dir string, room int) []sessionFile {
	var files []sessionFile
	walked := 0
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if walked++; walked > 4*maxFiles || len(files) >= maxFiles-1 {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() || name == dir+"/"+conversation {
			return nil //nolint:nilerr // what cannot be read is left out, and so is what would pass for the conversation
		}
		content, err := readFile(root, name, room)
		if err == nil {
			room -= len(content)
			files = append(files, sessionFile{strings.TrimPrefix(name, dir+"/"), content})
		}
		return nil
	})
	return files
}

// readFile reads a regular file of at most limit bytes. To open a pipe would wait for its other end, if it were not asked not to.
func readFile(root *os.Root, name string, limit int) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > int64(limit) {
		return nil, errors.New("no file of a session")
	}
	return io.ReadAll(io.LimitReader(f, info.Size()))
}
