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

// archive is a session unpacked. Packed it is a compressed tar.
type archive struct {
	home  string // the directory of the session's files beside the conversation, when they were taken; empty: unknown
	files []sessionFile
}

// sessionFile is one file of a session; the first is the conversation.
type sessionFile struct {
	name    string // in the session's directory
	content []byte
}

const (
	conversation = "session.jsonl" // stands for the file of JSON lines, which is beside that directory
	homeRecord   = "ERRAND.home"   // in the tar header of the conversation
)

// maxFiles bounds how many files a session has: each long tool result is one, each sub-agent two.
const maxFiles = 10_000

var errTooMuch = errors.New("archive: larger than a session can be")

func (a archive) pack() ([]byte, error) {
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

// unpack reads what pack made. Others may have written where the archive was kept, so it is held to the bounds of a session. Data that
// is no archive is the conversation alone, as it was kept at first.
func unpack(data []byte) (a archive, err error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return archive{files: []sessionFile{{conversation, data}}}, nil
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
			return a, fmt.Errorf("archive: %q is no file of a session", h.Name)
		case len(a.files) >= maxFiles, h.Size > room:
			return a, errTooMuch
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return a, err
		}
		room -= h.Size
		a.files = append(a.files, sessionFile{h.Name, content})
		a.home += h.PAXRecords[homeRecord]
	}
	if len(a.files) == 0 {
		return a, errors.New("archive: empty")
	}
	if _, err := io.Copy(io.Discard, in); err != nil { // the checksum is at the very end
		return a, err
	}
	if in.N <= 0 {
		return a, errTooMuch
	}
	return a, nil
}
