package protocol

import (
	"strings"
	"testing"
)

// An idle state shows in two lines and should be reported once; the next one again.
func TestEachRestIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newReading(t, nil)
	var rests []int // by the results before them
	r.idle = func() { rests = append(rests, r.facts.Results) }
	turn := func(id string) string {
		return strings.ReplaceAll(`{"type":"command_lifecycle","command_uuid":"ID","state":"started"}
{"type":"system","subtype":"init","session_id":"s"}
{"type":"result","subtype":"success","result":"x","session_id":"s"}
{"type":"command_lifecycle","command_uuid":"ID","state":"completed"}
{"type":"system","subtype":"session_state_changed","state":"idle"}
`, "ID", id)
	}
	r.Sent("one")
	r.readText(turn("one") + turn("of its own"))
	r.Sent("two")
	r.readText(`{"type":"system","subtype":"session_state_changed","state":"idle"}` + "\n" + turn("two"))
	if len(rests) != 3 || rests[0] != 1 || rests[1] != 2 || rests[2] != 3 {
		t.Errorf("rests were reported after these results: %v", rests)
	}
}
