package wire

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/cloud/bedrock"
	"github.com/errand-fleet/errand/agent/cloud/foundry"
	"github.com/errand-fleet/errand/agent/cloud/vertex"
	"github.com/errand-fleet/errand/config"
)

// credentials are the several credentials for the model.
func credentials(c config.Config) (list []agent.ModelCredential) {
	for _, one := range c.CredentialsHere() {
		list = append(list, agent.ModelCredential{
			Name: one.Name, APIKey: one.APIKey, OAuthToken: one.OAuthToken, AuthToken: one.AuthToken, Weight: one.Weight,
			Repositories: one.Repositories, People: one.People, DailyCap: one.DailyCap,
		})
	}
	return list
}

// modelPrices are what the operator says that models cost.
func modelPrices(c config.Config) (list agent.PriceList) {
	for _, m := range c.Routing.PricesOf(c.Provider()) {
		list = append(list, agent.ModelPrice{Pattern: m.Pattern, Price: agent.Price{
			Input: *m.Input, Output: *m.Output, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite, CacheWriteHour: m.CacheWriteHour,
		}})
	}
	return list
}

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

// modelCloud returns the cloud that offers the model; nil: none is used.
func modelCloud(c config.Cloud) (cloud.Provider, error) {
	ctx := context.Background() // files are read, and Google's library may ask whether this is a machine of Google
	switch {
	case c.Bedrock:
		return bedrock.New(ctx, bedrock.Config{Region: c.Region, Endpoint: c.BedrockURL, Key: c.BedrockKey.Reveal()})
	case c.Vertex:
		return vertex.New(ctx, vertex.Config{Project: c.VertexProject, Region: c.VertexRegion, Endpoint: c.VertexURL})
	case c.Foundry:
		return foundry.New(foundry.Config{Resource: c.FoundryResource, Endpoint: c.FoundryURL, Key: c.FoundryKey.Reveal()})
	}
	return nil, nil //nolint:nilnil // no cloud is no error
}

// modelNames returns what the provider calls the models that people choose by name.
func modelNames(m config.Model) map[string]string {
	names := map[string]string{"opus": m.Opus, "sonnet": m.Sonnet, "haiku": m.Haiku}
	maps.DeleteFunc(names, func(_, model string) bool { return model == "" })
	return names
}

// secretFileVariables name files with credentials for the model, which the CLI or the SDKs of the clouds would read.
var secretFileVariables = []string{
	"CLAUDE_CODE_CLIENT_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
	"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE",
}
