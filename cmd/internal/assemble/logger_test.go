package assemble

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
)

// What is not a terminal gets JSON, without secrets.
func TestLogger(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	conf := config.Config{}
	conf.HTTP.ConsoleToken = "hush-console-012345"
	Logger(&out, conf).Info("hello", "what", "hush-console-012345")
	const want = `"level":"INFO","msg":"hello","what":`
	if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "hush") {
		t.Error(got)
	}
}

// The ID of a trace, which follows from that of the task, is not searched for secrets: that costs more than the whole
// line.
func TestLoggerKeepsTraceIDs(t *testing.T) {
	t.Parallel()
	id := fmt.Sprintf("%x", tasks.TraceID("1-x"))
	var out strings.Builder
	conf := config.Config{}
	conf.HTTP.ConsoleToken, conf.Traces.Endpoint = config.Secret(id), "http://127.0.0.1:4318"
	Logger(&out, conf).Info("hello", "run", "1-x", "what", id)
	if got := out.String(); strings.Count(got, id) != 1 {
		t.Error(got)
	}
}
