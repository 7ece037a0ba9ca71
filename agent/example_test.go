package agent_test

import (
	"encoding/json"
	"fmt"

	"github.com/errand-fleet/errand/agent"
)

func ExampleToNeutral() {
	e := agent.Event{Kind: agent.ToolUse, Tool: "Edit", Input: json.RawMessage(`{"file_path":"run.go","old_string":"a","new_string":"b"}`)}
	name, input := agent.ToNeutral(e.Tool, e.Input)
	fmt.Printf("%s %s\n", name, input)
	// Output: edit {"path":"run.go","oldText":"a","newText":"b"}
}
