package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
)

// The configured format should apply; by default the output decides. Neither should contain a secret.
func TestLogger(t *testing.T) {
	t.Parallel()
	const text, object = `level=INFO msg=hello what=`, `"level":"INFO","msg":"hello","what":`
	for _, c := range []struct {
		format string
		people bool
		want   string
	}{
		{"", false, object},
		{"", true, text},
		{config.LogJSON, true, object},
		{config.LogText, false, text},
	} {
		var out strings.Builder
		conf := config.Config{}
		conf.Worker.LogFormat, conf.HTTP.ConsoleToken = c.format, "hush-console-012345"
		Logger(&out, conf, c.people).Info("hello", "what", "hush-console-012345")
		if got := out.String(); !strings.Contains(got, c.want) || strings.Contains(got, "hush") {
			t.Errorf("format %q, people %t: %s", c.format, c.people, got)
		}
	}
}

// The ID of a trace, which follows from that of the task, is not searched for secrets: that costs more than the whole
// line.
func TestLoggerKeepsTraceIDs(t *testing.T) {
	t.Parallel()
	id := fmt.Sprintf("%x", tasks.TraceID("1-x"))
	for _, people := range []bool{false, true} {
		var out strings.Builder
		conf := config.Config{}
		conf.HTTP.ConsoleToken, conf.Traces.Endpoint = config.Secret(id), "http://127.0.0.1:4318"
		Logger(&out, conf, people).Info("hello", "run", "1-x", "what", id)
		if got := out.String(); strings.Count(got, id) != 1 {
			t.Errorf("people %t: %s", people, got)
		}
	}
}
