// Package vertex is the model in Google Vertex AI.
package vertex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/errand-fleet/errand/agent/cloud"
)

// Config says which Vertex AI, and with which credential.
type Config struct {
	Project  string
	Region   string // such as europe-west1, eu or global
	File     string // with a credential of Google; empty: Google's application default
	Endpoint string // base URL with its version, like https://aiplatform.googleapis.com/v1; empty: that of the region
}

// identifier is the form of a model's ID. Whatever else could become another path at a gateway that decodes it.
var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.@_-]*$`)

// publisher is the part of a path between project and model.
const publisher = "/publishers/anthropic/models/"

// scope is what the tokens allow. Vertex AI has no narrower one.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// Vertex implements [cloud.Provider].
type Vertex struct {
	cfg    Config
	base   *url.URL
	models *regexp.Regexp // the paths of models
	tokens *cloud.Tokens[*oauth2.Token]
}

// New finds the credential. It asks for no token yet.
func New(ctx context.Context, cfg Config) (*Vertex, error) {
	if cfg.Project == "" || cfg.Region == "" {
		return nil, errors.New("use Vertex AI: set ANTHROPIC_VERTEX_PROJECT_ID and CLOUD_ML_REGION")
	}
	base, err := cloud.Base(cmp.Or(cfg.Endpoint, endpoint(cfg.Region)))
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: 30 * time.Second}
	found, err := find(context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, client), cfg.File)
	if err != nil {
		return nil, fmt.Errorf("find credentials of Google: %w", err)
	}
	v := &Vertex{cfg: cfg, base: base}
	get := func(context.Context) (*oauth2.Token, error) { return found.TokenSource.Token() }
	v.tokens = cloud.NewTokens(get, func(t *oauth2.Token) time.Time { return t.Expiry }, status)
	v.models = regexp.MustCompile(`^/projects/` + regexp.QuoteMeta(cfg.Project) + `/locations/` +
		regexp.QuoteMeta(cfg.Region) + publisher + `([^/:]+):(rawPredict|streamRawPredict)$`)
	return v, nil
}

// status returns the HTTP status of the answer that caused an error of a token source, or 0 if there was no answer.
func status(err error) int {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return e.Response.StatusCode
	}
	return 0
}

// find returns the credential in a file, or else Google's application default: a file, workload identity, or the
// machine's account.
func find(ctx context.Context, file string) (*google.Credentials, error) {
	if file == "" {
		return google.FindDefaultCredentials(ctx, scope)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Type google.CredentialsType `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return google.CredentialsFromJSONWithType(ctx, text, kind.Type, scope) // the operator has chosen the file
}

// endpoint returns the base URL of a region. Those of several countries are at addresses of another form.
func endpoint(region string) string {
	switch region {
	case "global":
		return "https://aiplatform.googleapis.com/v1"
	case "us", "eu":
		return "https://aiplatform." + region + ".rep.googleapis.com/v1"
	}
	return "https://" + region + "-aiplatform.googleapis.com/v1"
}

// Name implements cloud.Provider.
func (v *Vertex) Name() string { return "Google Vertex AI" }

// Host implements cloud.Provider.
func (v *Vertex) Host() string { return v.base.Host }

// Environment implements cloud.Provider.
func (v *Vertex) Environment(base string) map[string]string {
	return map[string]string{
		"CLAUDE_CODE_USE_VERTEX": "1", "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1", "ANTHROPIC_VERTEX_BASE_URL": base,
		"ANTHROPIC_VERTEX_PROJECT_ID": v.cfg.Project, "CLOUD_ML_REGION": v.cfg.Region,
	}
}

// Question implements cloud.Provider.
func (v *Vertex) Question(method, path string) (q cloud.Question, ok bool) {
	m := v.models.FindStringSubmatch(path)
	if method != http.MethodPost || m == nil {
		return q, false
	}
	model, err := url.PathUnescape(m[1])
	if err != nil || !identifier.MatchString(model) {
		return q, false
	}
	if model == "count-tokens" { // the body names the model
		return cloud.Question{Free: true}, m[2] == "rawPredict"
	}
	return cloud.Question{Model: model, Streamed: m[2] == "streamRawPredict"}, true
}

// Smallest implements cloud.Provider.
func (v *Vertex) Smallest(model string) (path, named, version string) {
	model = cmp.Or(model, "claude-opus-5-5")
	return publisher + url.PathEscape(model) + ":rawPredict", model, "vertex-2023-10-16"
}

// Direct implements cloud.Provider.
func (v *Vertex) Direct(u *url.URL) {
	for _, path := range []*string{&u.Path, &u.RawPath} {
		if _, model, ok := strings.Cut(*path, publisher); ok {
			*path = "/projects/" + v.cfg.Project + "/locations/" + v.cfg.Region + publisher + model
		}
	}
	cloud.Redirect(u, v.base)
}

// Sign implements cloud.Provider.
func (v *Vertex) Sign(req *http.Request, _ []byte) error {
	token, err := v.tokens.Current(req.Context())
	if err != nil {
		return fmt.Errorf("get a token of Google: %w", err)
	}
	token.SetAuthHeader(req)
	return nil
}
