package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"sync"
)

// object is a JSON object.
type object = map[string]any

// output writes complete lines with one object each to stdout.
type output struct {
	session string

	mu sync.Mutex
	w  io.Writer
}

func (o *output) say(line object) {
	if _, control := line["request_id"]; !control && line["type"] != "control_response" {
		line["session_id"] = o.session
	}
	text, err := json.Marshal(line)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.w.Write(append(text, '\n')) // EPIPE is ignored, as in the real CLI
}

func (o *output) lifecycle(uuid, state string) {
	o.say(object{"type": "command_lifecycle", "command_uuid": uuid, "state": state})
}

func (o *output) state(state string) {
	o.say(object{"type": "system", "subtype": "session_state_changed", "state": state})
}

// input is a line from the host.
type input struct {
	Type      string `json:"type"`
	UUID      string `json:"uuid"`
	RequestID string `json:"request_id"`
	Query     *bool  `json:"shouldQuery"`
	Message   struct {
		Content content `json:"content"`
	} `json:"message"`
	Request struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		RequestID string `json:"request_id"`
	} `json:"response"`
}

// content is the text of a message, which can be in blocks.
type content string

// UnmarshalJSON accepts a string or a list of blocks, of which it uses the texts.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content(text)
		return nil
	}
	var blocks []struct{ Text string }
	err := json.Unmarshal(data, &blocks)
	for _, b := range blocks {
		*c += content(b.Text + "\n")
	}
	return err
}

// read passes on every line until the host closes stdin.
func read(handle func(input)) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		var l input
		if len(line) > 0 && json.Unmarshal(line, &l) == nil {
			handle(l)
		}
		if err != nil {
			return
		}
	}
}
