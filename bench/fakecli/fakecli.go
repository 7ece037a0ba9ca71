// Package fakecli replaces the Claude Code CLI in the benchmarks. It speaks the part of the protocol that the runner
// and the official SDK need, at almost no cost. Each user message is an instruction:
//
//	replay FILE   write that session (package session), as fast as it is read
//	wait          begin a turn and be silent in it
//	numbers N     write N numbered lines in bursts, then end the turn
//	tools         start the tools of a run, print the PIDs of all its processes, and be silent; see Processes
//	stubborn      the same, and ignore TERM and the end of the input
//
// Like the real CLI it writes nothing before the first request, answers control requests, and exits at the end of its
// input.
package fakecli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Main runs the fake CLI and returns the exit code.
func Main(in io.Reader, out io.Writer) int {
	lines := bufio.NewReader(in)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			fmt.Fprintln(os.Stderr, "read input:", err)
			return 1
		}
		switch l.Type {
		case "control_request":
			fmt.Fprintf(out,
				`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`+"\n",
				l.RequestID, answer(l.Request.Subtype))
			switch l.Request.Subtype {
			case "interrupt":
				_, _ = io.WriteString(out, endLines) // the turn is over; a closed output is noticed at the next line
			case "end_session":
				return 0
			}
		case "user":
			if err := obey(out, l.Message.text()); err != nil {
				fmt.Fprintln(os.Stderr, "obey message:", err)
				return 1
			}
		}
	}
}

// line is the relevant part of a line of input.
type line struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Message message `json:"message"`
}

type message struct {
	Content json.RawMessage `json:"content"`
}

// text is the text of a message; the SDK writes a list of blocks, the runner a string.
func (m message) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &blocks) != nil || len(blocks) == 0 {
		return ""
	}
	return blocks[0].Text
}

// answer is the payload of the reply to a control request.
func answer(subtype string) string {
	if subtype != "initialize" {
		return "{}"
	}
	return `{"commands":[{"name":"compact","description":"Compact the conversation","argumentHint":""}],` +
		`"agents":[{"name":"Explore","description":"Looks around"}],` +
		`"models":[{"value":"default","resolvedModel":"claude-opus-5-5","displayName":"Default","description":"Opus 5.5"}],` +
		`"account":{"apiKeySource":"ANTHROPIC_API_KEY"},"output_style":"default","available_output_styles":["default"],` +
		`"claude_code_version":"2.1.332","pid":` + strconv.Itoa(os.Getpid()) + `,"session_state":"idle",` +
		`"capabilities":["interrupt_receipt_v1"],"current_permission_mode":"default"}`
}

const (
	initLine = `{"type":"system","subtype":"init","session_id":"s","model":"claude-opus-5-5","claude_code_version":"2.1.332"}` + "\n"
	textLine = `{"type":"stream_event","event":{"delta":{"text":%q,"type":"text_delta"},"index":0,"type":"content_block_delta"},` +
		`"session_id":"s","parent_tool_use_id":null}` + "\n"
	endLines = `{"type":"result","subtype":"success","is_error":false,"result":"Done.","num_turns":1,"session_id":"s"}` + "\n" +
		`{"type":"system","subtype":"session_state_changed","state":"idle","session_id":"s"}` + "\n"
)

func obey(out io.Writer, order string) error {
	verb, argument, _ := strings.Cut(order, " ")
	if verb == "replay" {
		return replay(out, argument)
	}
	if _, err := io.WriteString(out, initLine); err != nil {
		return err
	}
	switch verb {
	case "wait":
		return nil
	case "numbers":
		n, err := strconv.Atoi(argument)
		if err != nil {
			return err
		}
		return numbers(out, n)
	case "speak":
		n, err := strconv.Atoi(argument)
		if err != nil {
			return err
		}
		return speak(out, n)
	case "tools":
		return tools(out)
	case "stubborn":
		endure()
		if err := tools(out); err != nil {
			return err
		}
		ToolMain()
		return nil
	default:
		return fmt.Errorf("%q is nothing to do", order)
	}
}

// replay writes a file in pieces of a suitable size for a pipe.
func replay(out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	// The bare types keep io.CopyBuffer from using ReadFrom or WriteTo, so that all contenders get the same writes.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{f}, make([]byte, 256<<10))
	return err
}
