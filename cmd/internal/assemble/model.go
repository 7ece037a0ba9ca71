package assemble

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
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
			Name: one.Name, APIKey: one.APIKey, OAuthToken: one.OAuthToken, AuthToken: one.AuthToken,
			Token: modelToken(c, one.TokenCommand), Cloud: credentialCloud(c.Cloud, one), Names: one.Models,
			Prices:  modelPrices(c, cmp.Or(one.Provider, config.ProviderAnthropic)),
			Headers: modelHeaders(c, one.Provider), Repositories: one.Repositories, People: one.People,
		})
	}
	return list
}

// credentialCloud returns what opens the cloud of a credential; nil: it has none. The base URLs of clouds are for all
// of their credentials.
func credentialCloud(c config.Cloud, one config.Credential) func(key string) (cloud.Provider, error) {
	if one.Provider == "" {
		return nil
	}
	return func(key string) (cloud.Provider, error) {
		return modelCloud(config.Cloud{
			Bedrock: one.Provider == config.ProviderBedrock, Region: one.Region, BedrockURL: c.BedrockURL,
			BedrockKey: config.Secret(key), Vertex: one.Provider == config.ProviderVertex, VertexProject: one.Project,
			VertexRegion: one.Region, VertexURL: c.VertexURL, Foundry: one.Provider == config.ProviderFoundry,
			FoundryResource: one.Resource, FoundryURL: c.FoundryURL, FoundryKey: config.Secret(key),
		}, one.Profile, one.File)
	}
}

// credentialName returns the name under which workers share the limits of the model's credential, or of all credentials
// together. It is the same on every worker. It is a hash of the credentials, which are too long and random to be
// guessed from it. Its other inputs, such as a region or a command, are not secret.
func credentialName(c config.Config) string {
	secret := c.Model.APIKey.Reveal() + c.Model.OAuthToken.Reveal() + c.Model.AuthToken.Reveal() + c.Model.TokenCommand
	several := agent.CredentialSecrets(credentials(c), os.Getenv)
	for _, one := range c.CredentialsHere() {
		if one.Provider+one.TokenCommand != "" { // which may have no secret in the environment
			several = append(several, fmt.Sprint(one))
		}
	}
	if len(several) > 0 {
		slices.Sort(several)
		secret = strings.Join(several, "\x00")
	}
	where := c.Model.BaseURL
	if used := c.Cloud.Used(); used != "" { // whose credential changes
		cl := c.Cloud
		secret = used + cl.BedrockKey.Reveal() + cl.FoundryKey.Reveal()
		where = strings.Join([]string{
			cl.Region, cl.BedrockURL, cl.VertexProject, cl.VertexRegion, cl.VertexURL,
			cl.FoundryResource, cl.FoundryURL,
		}, "\x00")
	}
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"errand credential", where, secret}, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// modelPrices returns the operator's prices at a provider: its own before those of any, longer patterns before shorter
// ones. The list is never nil, which would mean the runner's prices.
func modelPrices(c config.Config, provider string) agent.PriceList {
	list := agent.PriceList{}
	longest := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
	for _, name := range []string{provider, config.ProviderAny} {
		for _, pattern := range slices.SortedFunc(maps.Keys(c.Routing.Prices[name]), longest) {
			p := c.Routing.Prices[name][pattern]
			list = append(list, agent.ModelPrice{Pattern: strings.ToLower(pattern), Price: agent.Price{
				Input: *p.Input, Output: *p.Output, CacheRead: cmp.Or(p.CacheRead, *p.Input/10),
			}})
		}
	}
	return list
}

// modelHeaders returns the operator's headers for requests to the model. A cloud's own address gets none.
func modelHeaders(c config.Config, provider string) http.Header {
	headers, cl := http.Header{}, c.Cloud
	bases := map[string]string{
		config.ProviderBedrock: cl.BedrockURL, config.ProviderVertex: cl.VertexURL,
		config.ProviderFoundry: cl.FoundryURL,
	}
	if base, isCloud := bases[provider]; isCloud && base == "" {
		return headers
	}
	for name, value := range c.Model.Pairs() {
		headers.Set(name, value)
	}
	return headers
}

// modelToken returns the token that a command prints, if there is one.
func modelToken(c config.Config, command string) agent.ModelToken {
	if command == "" {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		out, err := config.RunSecretCommand(ctx, command, c.SecretVariables())
		return strings.TrimSpace(string(out)), err
	}
}

// modelCloud returns the cloud that offers the model, or nil. It may have an AWS profile or a Google file.
func modelCloud(c config.Cloud, profile, file string) (cloud.Provider, error) {
	ctx := context.Background() // files are read, and Google's library may ask whether this is a machine of Google
	switch {
	case c.Bedrock:
		return bedrock.New(ctx, bedrock.Config{
			Region: c.Region, Profile: profile, Endpoint: c.BedrockURL, Key: c.BedrockKey.Reveal(),
		})
	case c.Vertex:
		return vertex.New(ctx, vertex.Config{
			Project: c.VertexProject, Region: c.VertexRegion, File: file, Endpoint: c.VertexURL,
		})
	case c.Foundry:
		return foundry.New(foundry.Config{
			Resource: c.FoundryResource, Endpoint: c.FoundryURL, Key: c.FoundryKey.Reveal(),
		})
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
	"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE",
}
