package console

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

func TestOutline(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"words"`:                          "words",
		`{"a":{"b":1.50},"c":[true,null]}`: "- **a:** \n\n  - **b:** 1.50\n- **c:** \n\n  1. true\n  2. –",
		`{"a":"one\ntwo"}`:                 "- **a:** one\n  two",
		`[{"a":1,"b":2}]`:                  "1. - **a:** 1\n   - **b:** 2",
		`{}`:                               "",
	} {
		if got, err := outlineJSON(json.RawMessage(in)); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{``, `{"a":`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if got := answerMarkdown(&tasks.Ending{Result: agent.Result{Text: "as it came", Structured: json.RawMessage(in)}}); got != "as it came" {
			t.Errorf("%.20s: got %q", in, got)
		}
	}
}
