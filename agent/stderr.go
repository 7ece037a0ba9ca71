package agent

import (
	"bytes"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// lastWords reads the CLI's stderr to its end: into the log, and the last lines of it into the result. It is redacted as one text, since a
// private key there has many lines.
func (l *live) lastWords(in *lines) {
	clean := l.r.cfg.Redactor.Stream()
	say := func(text []byte) {
		for line := range bytes.Lines(text) {
			l.stderr.Add(line)
			l.log.Note(time.Now(), "[stderr] %s", line)
		}
	}
	for {
		p, err := in.Next()
		if err != nil {
			say(clean.Flush())
			return
		}
		say(clean.Write(redact.Plain(p.text)))
	}
}
