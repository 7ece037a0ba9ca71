package gateway

import (
	"encoding/binary"
	"regexp"

	"github.com/go-json-experiment/json"
)

// frameType is the type of Bedrock's streamed answers. A frame has its length, the length of its headers, a checksum of
// both, the headers, the payload and a checksum; numbers have four bytes. The payload is {"bytes": "…"}, the model's
// event in base64.
const frameType = "application/vnd.amazon.eventstream"

const (
	preludeSize  = 12
	checksumSize = 4
)

// frames reads the usage from the frames in b, the next bytes of the body. Frames that are too long have none.
func (m *meter) frames(b []byte) {
	for len(b) > 0 {
		if m.skip > 0 {
			n := min(m.skip, int64(len(b)))
			m.skip, b = m.skip-n, b[n:]
			continue
		}
		size := int64(preludeSize)
		if len(m.line) >= preludeSize {
			size = int64(binary.BigEndian.Uint32(m.line))
		}
		n := min(size-int64(len(m.line)), int64(len(b)))
		m.line, b = append(m.line, b[:n]...), b[n:]
		if int64(len(m.line)) < size {
			return
		}
		switch size = int64(binary.BigEndian.Uint32(m.line)); {
		case size < preludeSize+checksumSize, size > int64(m.limit): // broken, or too long
			m.skip, m.line, m.begun = max(size, preludeSize)-preludeSize, m.line[:0], true
		case int64(len(m.line)) == size:
			m.frame(m.line)
			m.line = m.line[:0]
		}
	}
}

// failure finds the header of frames with an error. Names have their length before them, values a type and a length.
var failure = regexp.MustCompile(`\x0d:message-type\x07\x00(?:\x09exception|\x05error)`)

// frame reads the usage from one frame.
func (m *meter) frame(b []byte) {
	begin, end := preludeSize+int64(binary.BigEndian.Uint32(b[4:])), int64(len(b)-checksumSize)
	if begin > end {
		m.begun = true
		return
	}
	if failure.Match(b[preludeSize:begin]) {
		m.expect("error")
		return
	}
	var payload struct {
		Bytes []byte `json:"bytes"`
	}
	var event struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(b[begin:end], &payload) != nil || json.Unmarshal(payload.Bytes, &event) != nil {
		m.begun = true
		return
	}
	if m.expect(event.Type); m.event != "" {
		m.count(payload.Bytes)
	}
}
