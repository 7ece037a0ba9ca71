package wire

import (
	"context"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// modelHeaders returns the further headers of requests to the model.
func modelHeaders(m config.Model) http.Header {
	headers := http.Header{}
	for name, value := range m.Pairs() {
		headers.Set(name, value)
	}
	return headers
}

// modelToken returns the token that a command prints, if there is one.
func modelToken(m config.Model) agent.ModelToken {
	if m.TokenCommand == "" {
		return agent.ModelToken{}
	}
	return agent.ModelToken{Life: m.TokenLife, Fetch: func(ctx context.Context) (string, error) {
		out, err := config.RunSecretCommand(ctx, m.TokenCommand)
		return strings.TrimSpace(string(out)), err
	}}
}
