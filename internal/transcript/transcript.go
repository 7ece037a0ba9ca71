// Package transcript is the form in which the CLI's conversations are stored and moved: [Unpack] and [Archive.Pack]
// read and write it, and [Archive.Place] puts a conversation where the CLI resumes it. Its functions may be called from
// any goroutine.
//
// The CLI saves a conversation as a file of JSON lines and, in a directory with the session's name beside it, the tool
// results that were too long for a message and the conversations of sub-agents.
package transcript

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

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

// Place writes a session to where the CLI looks for it when it runs in workDir, below config, the directory of its
// configuration. The CLI sees that directory at the path seen. Where the conversation names the session's other files,
// the paths are changed to the new ones. Place overwrites nothing: if the session is there already, it returns
// fs.ErrExist.
func (a Archive) Place(config, seen, id, workDir string) error {
	project := projectDir(workDir)
	if err := os.MkdirAll(filepath.Join(config, project), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(config, project))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range a.Files {
		if a.Home != "" && path.Ext(f.Name) == ".jsonl" {
			f.Content = bytes.ReplaceAll(f.Content, []byte(a.Home+"/"),
				[]byte(filepath.Join(seen, project, id)+"/"))
		}
		name := path.Join(id, f.Name)
		if f.Name == Conversation {
			name = id + ".jsonl"
		}
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		if err := write(root, name, f.Content); err != nil {
			return err
		}
	}
	return nil
}

// write writes a new file.
func write(root *os.Root, name string, content []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Archive is a session, unpacked. Packed it is a compressed tar.
type Archive struct {
	Home  string // directory of the session's other files when they were saved; empty: unknown
	Files []File // the first is the conversation
}

// File is one file of a session.
type File struct {
	Name    string // in the session's directory
	Content []byte
}

const (
	Conversation = "session.jsonl" // name of the conversation, which the CLI keeps beside the session's directory
	homeRecord   = "ERRAND.home"   // in the tar header of the conversation
)

// The bounds of a session.
const (
	MaxSize   = 64 << 20 // bytes, unpacked; a session of hours has a few megabytes
	MaxPacked = 8 << 20  // packed bytes that others store; above it, only the conversation is packed
	MaxFiles  = 10_000   // each long tool result is one, each sub-agent two; pipes and links count as well
)

var errTooLarge = errors.New("archive: larger than a session can be")

// Holds reports whether the conversation contains something with that ID, such as a message that the CLI has taken up.
// It is there as a separate line ("uuid") or as a message sent into a turn ("source_uuid"). A message that was only
// queued when the CLI was interrupted is not part of the conversation; the CLI names it as the "commandUuid" of what it
// dropped (observed).
func (a Archive) Holds(id string) bool {
	return bytes.Contains(a.Lines(), []byte(`uuid":"`+id+`"`))
}

// Lines returns the JSON lines of the conversation.
func (a Archive) Lines() []byte { return a.Files[0].Content }

// Pack returns the archive as [Unpack] reads it.
func (a Archive) Pack() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for i, f := range a.Files {
		h := &tar.Header{Name: f.Name, Size: int64(len(f.Content)), Mode: 0o600}
		if i == 0 {
			h.PAXRecords = map[string]string{homeRecord: a.Home}
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.Content); err != nil {
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
		return Archive{Files: []File{{Conversation, data}}}, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return a, err
	}
	in := &io.LimitedReader{R: z, N: MaxSize + 4<<10*MaxFiles} // with the headers of the tar
	t, room := tar.NewReader(in), int64(MaxSize)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return a, err
		case h.Typeflag != tar.TypeReg, !filepath.IsLocal(h.Name), (len(a.Files) == 0) != (h.Name == Conversation):
			return a, fmt.Errorf("archive: %q is not a file of a session", h.Name)
		case len(a.Files) >= MaxFiles, h.Size > room:
			return a, errTooLarge
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return a, err
		}
		room -= h.Size
		a.Files = append(a.Files, File{h.Name, content})
		a.Home += h.PAXRecords[homeRecord]
	}
	if len(a.Files) == 0 {
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
