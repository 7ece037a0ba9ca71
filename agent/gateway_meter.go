package agent

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// Bounds of what a meter keeps of a body. What is longer passes all the same, uncounted.
const (
	maxEvent = 64 << 10 // message_start and message_delta have about 1 KB
	maxBody  = 4 << 20  // an answer that was not streamed
)

// meter reads off a body that passes through it what the call has used, holding nothing back. It belongs to the goroutine that reads the body.
type meter struct {
	io.ReadCloser
	first func()                                 // called at the first byte
	used  func(b bill, model string, whole bool) // called with what the call has used so far; whole: in all. model is the one that answers, or empty

	limit  int    // bytes of line; 0: there is nothing to count
	stream bool   // of server-sent events; else one JSON object
	line   []byte // the latest line as far as it has passed, or the object
	long   bool   // the line was longer than limit
	event  string // the one that the line belongs to, where it has usage
	sum    bill   // told to used
}

func newMeter(res *http.Response, first func(), used func(bill, string, bool)) *meter {
	m := &meter{ReadCloser: res.Body, first: first, used: used}
	switch kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); {
	case res.StatusCode != http.StatusOK, res.Header.Get("Content-Encoding") != "": // an error, or an encoding nobody asked for
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

// lastUsage is the event of a stream with which the call's usage is complete.
const lastUsage = "message_delta"

// count reads usage where the API has it: in the message, or beside it. It is that of the whole call so far, each time.
func (m *meter) count(data []byte) {
	var v struct {
		Message struct {
			Model string `json:"model"`
			Usage bill   `json:"usage"`
		} `json:"message"`
		Model string `json:"model"`
		Usage *bill  `json:"usage"`
	}
	if m.long || json.Unmarshal(data, &v, lenient) != nil {
		return
	}
	m.sum = m.sum.most(v.Message.Usage)
	if v.Usage != nil {
		m.sum = m.sum.most(*v.Usage)
	}
	m.used(m.sum, cmp.Or(v.Message.Model, v.Model), v.Usage != nil && (!m.stream || m.event == lastUsage))
}
