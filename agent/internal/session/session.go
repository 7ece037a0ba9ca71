// Package session manages the directories of a run, and the session that the CLI saves in them.
//
// [Make] creates the directories and locks them, so that [Sweep] leaves them alone as long as this process lives.
// [Dirs.Restore] puts a saved session where the CLI looks for it, and [Dirs.Save] packs it again. Functions may be
// called from any goroutine.
package session

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// The CLI saves a conversation as a file of JSON lines and, in a directory with the session's name beside it, the tool
// results that were too long for a message and the conversations of sub-agents.

// maxProject is the length from which on the CLI cuts the name of a directory of sessions.
const maxProject = 200

// projectDir returns the CLI's directory for sessions that run in dir, below that of its configuration. Its name is
// the path with everything but letters and digits turned into dashes, for each unit of UTF-16. Of a long one only the
// beginning is there, with a hash of the whole path (2.1.332).
func projectDir(dir string) string {
	var name []byte
	var hash int32
	for _, unit := range utf16.Encode([]rune(dir)) {
		hash = hash<<5 - hash + int32(unit)
		char := byte('-')
		if unit < utf8.RuneSelf && (unicode.IsLetter(rune(unit)) || unicode.IsDigit(rune(unit))) {
			char = byte(unit)
		}
		name = append(name, char)
	}
	if len(name) > maxProject {
		name = append(name[:maxProject], '-')
		name = strconv.AppendUint(name, uint64(max(int64(hash), -int64(hash))), 36)
	}
	return filepath.Join("projects", string(name))
}

// Restore writes a saved session to where the CLI looks for it when it runs in workDir. Where the conversation names
// the session's other files, the paths are changed to the new ones.
func (d Dirs) Restore(a Archive, id, workDir string) error {
	project := projectDir(workDir)
	if err := os.MkdirAll(filepath.Join(d.Config, project), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(d.Config, project))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range a.files {
		if a.home != "" && path.Ext(f.name) == ".jsonl" {
			f.content = bytes.ReplaceAll(f.content, []byte(a.home+"/"),
				[]byte(filepath.Join(d.Inside().Config, project, id)+"/"))
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
	lines, err := readFile(project, id+".jsonl", maxSession)
	lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // the CLI may have written part of the last one
	if err != nil || len(lines) == 0 {
		return nil, nil
	}
	c := collector{room: maxSession - len(lines)}
	c.collect(project, id, "", 0)
	home := filepath.Join(d.Inside().Config, "projects", filepath.Base(project.Name()), id)
	a := Archive{home: home, files: append([]file{{conversation, lines}}, c.files...)}
	for i, f := range a.files {
		a.files[i].content = secrets.Bytes(f.content)
	}
	data, err := a.pack()
	if len(data) > maxPacked {
		a.files = a.files[:1]
		data, err = a.pack()
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
	entries, err := list(projects, maxFiles)
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
	files []file
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
		case c.tried >= maxFiles-1:
			return
		case len(named) > maxPath:
		case e.IsDir():
			if depth < maxDepth {
				c.collect(dir, e.Name(), named, depth+1)
			}
		case named != conversation: // which would pass for the conversation
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
		c.files = append(c.files, file{named, content})
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

// Archive is a session, unpacked. Packed it is a compressed tar.
type Archive struct {
	home  string // directory of the session's other files when they were saved; empty: unknown
	files []file // the first is the conversation
}

// file is one file of a session.
type file struct {
	name    string // in the session's directory
	content []byte
}

const (
	conversation = "session.jsonl" // name of the conversation, which the CLI keeps beside the session's directory
	homeRecord   = "ERRAND.home"   // in the tar header of the conversation
)

// Bounds of a session.
const (
	maxSession = 64 << 20 // bytes, unpacked; a session of hours has a few megabytes
	maxPacked  = 8 << 20  // packed bytes that others store; above it, only the conversation is packed
	maxFiles   = 10_000   // each long tool result is one, each sub-agent two; pipes and links count as well
	maxSeen    = 40_000   // files and directories that are looked at
	maxDepth   = 16       // directories below that of the session; the CLI has two
	maxPath    = 512      // bytes of a path in that of the session
)

var (
	errTooLarge = errors.New("archive: larger than a session can be")
	errTooMany  = fmt.Errorf("there are more than %d directories beside it", maxFiles)
)

// Holds reports whether the conversation contains something with that ID, such as a message that the CLI has taken up.
// It is there as a separate line ("uuid") or as a message sent into a turn ("source_uuid"). A message that was only
// queued when the CLI was interrupted is not part of the conversation; the CLI names it as the "commandUuid" of what it
// dropped (observed).
func (a Archive) Holds(id string) bool {
	return bytes.Contains(a.Conversation(), []byte(`uuid":"`+id+`"`))
}

// Conversation returns the JSON lines of the conversation.
func (a Archive) Conversation() []byte { return a.files[0].content }

func (a Archive) pack() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for i, f := range a.files {
		h := &tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: 0o600}
		if i == 0 {
			h.PAXRecords = map[string]string{homeRecord: a.home}
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Unpack reads a saved session. Others may have written where it was kept, so it must be within the bounds of a
// session. Data that is not compressed is the conversation without other files.
func Unpack(data []byte) (a Archive, err error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return Archive{files: []file{{conversation, data}}}, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return a, err
	}
	in := &io.LimitedReader{R: z, N: maxSession + 4<<10*maxFiles} // with the headers of the tar
	t, room := tar.NewReader(in), int64(maxSession)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return a, err
		case h.Typeflag != tar.TypeReg, !filepath.IsLocal(h.Name), (len(a.files) == 0) != (h.Name == conversation):
			return a, fmt.Errorf("archive: %q is not a file of a session", h.Name)
		case len(a.files) >= maxFiles, h.Size > room:
			return a, errTooLarge
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return a, err
		}
		room -= h.Size
		a.files = append(a.files, file{h.Name, content})
		a.home += h.PAXRecords[homeRecord]
	}
	if len(a.files) == 0 {
		return a, errors.New("archive: empty")
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // the checksum is at the end
		return a, err
	}
	if in.N <= 0 {
		return a, errTooLarge
	}
	return a, nil
}
