package wire

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
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
