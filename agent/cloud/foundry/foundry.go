// Package foundry is the model in Microsoft Foundry.
package foundry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/errand-fleet/errand/agent/cloud"
)

// Config says which resource of Foundry, and with which credential.
type Config struct {
	Resource string // the name of the resource
	Endpoint string // base URL instead, like https://name.services.ai.azure.com/anthropic
	Key      string // an API key; empty: Entra ID, by the chain of Azure's SDK
}

// scope is that of the tokens which the CLI itself would ask for (seen with CLI 2.1.329).
const scope = "https://cognitiveservices.azure.com/.default"

// Foundry implements [cloud.Provider].
type Foundry struct {
	cfg    Config
	base   *url.URL
	tokens *cloud.Tokens[azcore.AccessToken] // without Config.Key
}

// New prepares the credential. It asks for no token yet.
func New(cfg Config) (*Foundry, error) {
	if cfg.Resource == "" && cfg.Endpoint == "" {
		return nil, errors.New("use Foundry: set ANTHROPIC_FOUNDRY_RESOURCE or ANTHROPIC_FOUNDRY_BASE_URL")
	}
	base, err := cloud.Base(cmp.Or(cfg.Endpoint, "https://"+cfg.Resource+".services.ai.azure.com/anthropic"))
	if err != nil {
		return nil, err
	}
	f := &Foundry{cfg: cfg, base: base}
	if cfg.Key != "" {
		return f, nil
	}
	// The SDK would ask Microsoft's public cloud about an unknown authority, such as that of a private cloud.
	private := os.Getenv("AZURE_AUTHORITY_HOST") != ""
	credential, err := azidentity.NewDefaultAzureCredential(
		&azidentity.DefaultAzureCredentialOptions{DisableInstanceDiscovery: private})
	if err != nil {
		return nil, fmt.Errorf("find credentials of Entra ID: %w", err)
	}
	get := func(ctx context.Context) (azcore.AccessToken, error) {
		return credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	}
	f.tokens = cloud.NewTokens(get, func(t azcore.AccessToken) time.Time { return t.ExpiresOn }, status)
	return f, nil
}

// status returns the HTTP status of the answer that caused an error of a credential, or 0 if there was no answer.
func status(err error) int {
	if e, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok && e.RawResponse != nil {
		return e.RawResponse.StatusCode
	}
	return 0
}

// Name implements cloud.Provider.
func (f *Foundry) Name() string { return "Microsoft Foundry" }

// Host implements cloud.Provider.
func (f *Foundry) Host() string { return f.base.Host }

// Environment implements cloud.Provider.
func (f *Foundry) Environment(base string) map[string]string {
	return map[string]string{
		"CLAUDE_CODE_USE_FOUNDRY": "1", "CLAUDE_CODE_SKIP_FOUNDRY_AUTH": "1", "ANTHROPIC_FOUNDRY_BASE_URL": base,
	}
}

// Question implements cloud.Provider.
func (f *Foundry) Question(method, path string) (q cloud.Question, ok bool) {
	q.Free = path == "/v1/messages/count_tokens"
	return q, method == http.MethodPost && (q.Free || path == "/v1/messages")
}

// Smallest implements cloud.Provider.
func (f *Foundry) Smallest(model string) (path, named, version string) {
	return "/v1/messages", cmp.Or(model, "claude-sonnet-4-5"), ""
}

// Direct implements cloud.Provider.
func (f *Foundry) Direct(u *url.URL) { cloud.Redirect(u, f.base) }

// Sign implements cloud.Provider.
func (f *Foundry) Sign(req *http.Request, _ []byte) error {
	if f.cfg.Key != "" {
		req.Header.Set("X-Api-Key", f.cfg.Key)
		return nil
	}
	token, err := f.tokens.Current(req.Context())
	if err != nil {
		return fmt.Errorf("get a token of Entra ID: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Token)
	return nil
}
