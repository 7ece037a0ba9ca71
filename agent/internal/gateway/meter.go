package gateway

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of the part of a body that a meter keeps. Longer parts pass without being counted.
const (
	maxEvent = 64 << 10 // of an event's line; message_start and message_delta have about 1 KB
	maxBody  = 4 << 20  // of an answer that is not streamed
)

// meter reads the usage of a call from the answer that passes through it, without holding anything back. It belongs to
// the goroutine that reads the body.
type meter struct {
	io.ReadCloser
	first func()                                 // called at the first byte
	used  func(b Bill, model string, whole bool) // called with the usage so far, and the model that answers if known; whole: it is the total

	limit  int    // maximum length of line; 0: the answer has no usage
	stream bool   // the body is server-sent events, otherwise one JSON object
	line   []byte // the current line so far, or the object
	long   bool   // the line was longer than limit
	event  string // the event of the line, if it has usage
	sum    Bill   // the usage so far
}

func newMeter(res *http.Response, first func(), used func(Bill, string, bool)) *meter {
	m := &meter{ReadCloser: res.Body, first: first, used: used}
	switch kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); {
	case res.StatusCode != http.StatusOK, res.Header.Get("Content-Encoding") != "": // an error, or an encoding that was not requested
	case kind == "text/event-stream":
		m.stream, m.limit = true, maxEvent
	case kind == "application/json":
		m.limit = maxBody
	}
	return m
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if n > 0 && m.first != nil {
		m.first()
		m.first = nil
	}
	if m.stream {
		m.lines(p[:n])
	} else {
		m.keep(p[:n])
		if err == io.EOF {
			m.count(m.line)
		}
	}
	return n, err
}

func (m *meter) keep(b []byte) {
	m.long = m.long || len(m.line)+len(b) > m.limit
	if !m.long {
		m.line = append(m.line, b...)
	}
}

func (m *meter) lines(b []byte) {
	for {
		head, rest, ended := bytes.Cut(b, []byte{'\n'})
		m.keep(head)
		if !ended {
			return
		}
		if name, ok := bytes.CutPrefix(m.line, []byte("event:")); ok {
			switch m.event = string(bytes.TrimSpace(name)); m.event {
			case "message_start", lastUsage:
			default:
				m.event = ""
			}
		} else if data, ok := bytes.CutPrefix(m.line, []byte("data:")); ok && m.event != "" {
			m.count(data)
		}
		m.line, m.long, b = m.line[:0], false, rest
	}
}

// lastUsage is the event that completes the usage of a streamed call.
const lastUsage = "message_delta"

// count reads the usage in an event or an answer. The API puts it into the message or beside it, and reports the sum so
// far each time.
func (m *meter) count(data []byte) {
	var v struct {
		Message struct {
			Model string `json:"model"`
			Usage Bill   `json:"usage"`
		} `json:"message"`
		Model string `json:"model"`
		Usage *Bill  `json:"usage"`
	}
	if m.long || json.Unmarshal(data, &v, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return
	}
	m.sum = m.sum.most(v.Message.Usage)
	if v.Usage != nil {
		m.sum = m.sum.most(*v.Usage)
	}
	m.used(m.sum, cmp.Or(v.Message.Model, v.Model), v.Usage != nil && (!m.stream || m.event == lastUsage))
}
