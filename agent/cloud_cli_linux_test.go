package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/cloud/bedrock"
	"github.com/errand-fleet/errand/agent/cloud/foundry"
	"github.com/errand-fleet/errand/agent/cloud/vertex"
	"github.com/errand-fleet/errand/internal/cloudfake"
)

// clouds returns how to reach each cloud at the base URL of a fake. Google's tokens are real ones of another fake.
func clouds(t *testing.T) map[string]func(base string) (cloud.Provider, error) {
	t.Helper()
	google, key, err := cloudfake.NewVertex("", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(google.Close)
	file := filepath.Join(t.TempDir(), "google.json")
	if err := os.WriteFile(file, key, 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]func(string) (cloud.Provider, error){
		"bedrock": func(base string) (cloud.Provider, error) {
			return bedrock.New(t.Context(), bedrock.Config{Region: "eu-west-1", Endpoint: base, Key: "bedrock-key-1"})
		},
		"vertex": func(base string) (cloud.Provider, error) {
			return vertex.New(t.Context(), vertex.Config{Project: "acme", Region: "eu", File: file, Endpoint: base + "/v1"})
		},
		"foundry": func(base string) (cloud.Provider, error) {
			return foundry.New(foundry.Config{Endpoint: base + "/anthropic", Key: "foundry-key-1"})
		},
	}
}

// Refusals in the forms of the clouds end a run with the class that says what can be done.
func TestCLIErrorsOfClouds(t *testing.T) {
	t.Parallel()
	all := clouds(t)
	for name, c := range map[string]struct {
		status int
		kind   string // of Bedrock
		text   string
		class  Class
	}{
		"bedrock throttles":        {429, "ThrottlingException", `{"message":"Too many tokens, please wait before trying again."}`, ClassRateLimit},
		"bedrock throttles a day":  {429, "ThrottlingException", `{"message":"Too many tokens per day, please wait before trying again."}`, ClassRateLimit},
		"bedrock has a quota":      {400, "ServiceQuotaExceededException", `{"message":"Your request exceeds the service quota for your account."}`, ClassRateLimit},
		"bedrock is not ready":     {429, "ModelNotReadyException", `{"message":"The model is not ready for inference."}`, ClassRateLimit},
		"bedrock is unavailable":   {503, "ServiceUnavailableException", `{"message":"Bedrock is unable to process your request."}`, ClassOverloaded},
		"bedrock denies the model": {403, "AccessDeniedException", `{"message":"You don't have access to the model with the specified model ID."}`, ClassAuth},
		"bedrock knows no token":   {403, "ExpiredTokenException", `{"message":"The security token included in the request is expired"}`, ClassAuth},
		"bedrock knows no model":   {400, "ValidationException", `{"message":"The provided model identifier is invalid."}`, ClassModel},
		"bedrock retired a model":  {404, "ResourceNotFoundException", `{"message":"This model version has reached the end of its life."}`, ClassModel},
		"bedrock has no room":      {400, "ValidationException", `{"message":"Input is too long for requested model."}`, ClassContext},
		"vertex has a quota":       {429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model"}}`, ClassRateLimit},
		"vertex is overloaded":     {429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Resource exhausted. Please try again later."}}`, ClassRateLimit},
		"vertex denies":            {403, "", `{"error":{"code":403,"status":"PERMISSION_DENIED","message":"Permission 'aiplatform.endpoints.predict' denied on resource."}}`, ClassAuth},
		"vertex knows no model":    {404, "", `{"error":{"code":404,"status":"NOT_FOUND","message":"Publisher Model was not found or your project does not have access to it."}}`, ClassModel},
		"foundry limits":           {429, "", `{"error":{"code":"429","message":"Requests have exceeded the rate limit of your current tier."}}`, ClassRateLimit},
		"foundry knows no key":     {401, "", `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, ClassAuth},
		"foundry knows no model":   {404, "", `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, ClassModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if req.Method == http.MethodGet {
					_, _ = io.WriteString(w, `{"inferenceProfileSummaries":[]}`)
					return
				}
				if c.kind != "" {
					w.Header().Set("X-Amzn-Errortype", c.kind)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.text)
			}))
			t.Cleanup(server.Close)
			provider, _, _ := strings.Cut(name, " ")
			r := newCLI(t, newModel(t), impatient, func(cfg *Config) {
				cfg.BaseURL, cfg.Credential = "", Credential{}
				cfg.Credentials = []ModelCredential{{Name: "it", Cloud: func(string) (cloud.Provider, error) { return all[provider](server.URL) }}}
			})
			spec := Spec{ID: strings.ReplaceAll(name, " ", "-"), Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read}
			if res := runCLI(t, r, spec, &host{}); res.Error == nil || res.Error.Class != c.class || res.Error.User != NewError(c.class, "").User {
				t.Errorf("%s, %+v, want %s", res.Outcome, res.Error, c.class)
			}
		})
	}
}
