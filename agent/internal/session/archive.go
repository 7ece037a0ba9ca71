package session

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

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
	maxPacked  = 8 << 20  // bytes, packed, that others agree to keep; if it is more, the conversation goes without the other files
	maxFiles   = 10_000   // each long tool result is one, each sub-agent two
)

var errTooLarge = errors.New("archive: larger than a session can be")

// Holds reports whether the conversation contains something with that ID, such as a message that the CLI has taken up. It is there as a
// line of its own ("uuid") or as a message sent into a turn ("source_uuid"). A message that was only queued when the CLI was interrupted
// is not part of the conversation; the CLI names it as the "commandUuid" of what it dropped (observed).
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

// Unpack reads a saved session. Others may have written where it was kept, so it must be within the bounds of a session. Data that is
// not compressed is the conversation without other files.
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
