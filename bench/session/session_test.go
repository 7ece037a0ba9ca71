package session

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// kind is the kind of a line for a reader.
type kind struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Event   struct {
		Type  string `json:"type"`
		Delta struct {
			Type string `json:"type"`
		} `json:"delta"`
	} `json:"event"`
	Session string `json:"session_id"`
	UUID    string `json:"uuid"`
}

func (k kind) String() string {
	return strings.TrimRight(strings.Join([]string{k.Type, k.Subtype, k.Event.Type, k.Event.Delta.Type}, " "), " ")
}

func TestMixture(t *testing.T) {
	t.Parallel()
	const size = 20 << 20
	var out bytes.Buffer
	lines, err := Write(&out, size)
	if err != nil {
		t.Fatal(err)
	}
	if out.Len() < size || out.Len() > size+7<<20 {
		t.Errorf("asked for %d bytes, got %d", size, out.Len())
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); int64(n) != lines {
		t.Errorf("said %d lines, wrote %d", lines, n)
	}
	bytesOf := map[string]int{}
	large, last := 0, ""
	for line := range bytes.Lines(out.Bytes()) {
		var k kind
		if err := json.Unmarshal(line, &k); err != nil {
			t.Fatalf("%v in %.200s", err, line)
		}
		if k.Session != id || len(k.UUID) != 36 {
			t.Fatalf("session %q and uuid %q in %.200s", k.Session, k.UUID, line)
		}
		last = k.String()
		bytesOf[last] += len(line)
		if len(line) > 1<<20 {
			large++
		}
	}
	want := []string{
		"assistant", "result success",
		"stream_event  content_block_delta input_json_delta", "stream_event  content_block_delta signature_delta",
		"stream_event  content_block_delta text_delta", "stream_event  content_block_delta thinking_delta",
		"stream_event  content_block_start", "stream_event  content_block_stop", "stream_event  message_delta",
		"stream_event  message_start", "stream_event  message_stop",
		"system init", "system session_state_changed", "system status", "system task_notification",
		"system task_started", "tool_progress", "user",
	}
	if got := slices.Sorted(maps.Keys(bytesOf)); !slices.Equal(got, want) {
		t.Errorf("kinds of lines %q, want %q", got, want)
	}
	if last != "system session_state_changed" {
		t.Errorf("the last line is of the kind %s", last)
	}
	if large == 0 {
		t.Error("no very large line")
	}
	if !slices.ContainsFunc(Secrets(), func(s string) bool { return bytes.Contains(out.Bytes(), []byte(s)) }) {
		t.Error("there is nothing for a redactor to find")
	}
	pieces := bytesOf["stream_event  content_block_delta input_json_delta"] + bytesOf["stream_event  content_block_delta text_delta"] +
		bytesOf["stream_event  content_block_delta thinking_delta"]
	if share := float64(pieces) / float64(out.Len()); share < 0.2 || share > 0.5 {
		t.Errorf("%.0f %% of the bytes are pieces of messages", 100*share)
	}
}
