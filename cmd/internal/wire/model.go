package wire

import (
	"context"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// modelHeaders reads headers from lines of the form "Name: value". An .env file cannot have several lines in one value
// everywhere, so \\n ends a line, too.
func modelHeaders(text string) http.Header {
	headers := http.Header{}
	for line := range strings.Lines(strings.ReplaceAll(text, `\n`, "\n")) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			headers.Set(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	return headers
}

// modelToken returns the token that a command prints, if there is one.
func modelToken(m config.Model) agent.ModelToken {
	if m.TokenCommand == "" {
		return agent.ModelToken{}
	}
	return agent.ModelToken{Life: m.TokenLife, Fetch: func(context.Context) (string, error) {
		out, err := config.RunSecretCommand(m.TokenCommand)
		return strings.TrimSpace(string(out)), err
	}}
}
