package agent

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// describeWidth is how many characters of an action people are shown: a line of a status message.
const describeWidth = 80

// describe puts a tool call into words, such as "Reading agent/run.go": one line, without secrets. Paths are relative to dir.
func describe(redactor *Redactor, dir, name string, input json.RawMessage) string {
	t, ok := catalog[name]
	if !ok {
		return redact.Clip(redactor.OneLine("Using "+strings.ReplaceAll(strings.TrimPrefix(name, "mcp__"), "__", " ")), describeWidth)
	}
	what := t.subject(input)
	if strings.HasSuffix(t.arg, "path") && filepath.IsAbs(what) {
		what = relative(what, dir)
	}
	return redact.Clip(redactor.OneLine(t.verb+" "+what), describeWidth)
}
