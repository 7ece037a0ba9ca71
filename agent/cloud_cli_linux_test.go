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

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

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

// throttle answers as Bedrock does that has too much to do after it has begun an answer.
func throttle(t *testing.T, w http.ResponseWriter) {
	t.Helper()
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	err := eventstream.NewEncoder().Encode(w, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: ":exception-type", Value: eventstream.StringValue("throttlingException")},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
			{Name: ":message-type", Value: eventstream.StringValue("exception")},
		},
		Payload: []byte(`{"message":"Too many requests, please wait before trying again."}`),
	})
	if err != nil {
		t.Error(err)
	}
}

// Refusals in the forms of the clouds end a run with the class that says what can be done.
func TestCLIErrorsOfClouds(t *testing.T) {
	t.Parallel()
	all := clouds(t)
	for name, c := range map[string]struct {
		status   int
		kind     string // of Bedrock
		text     string
		class    Class
		streamed bool // Bedrock begins an answer and says it there; then the CLI asks for an answer that is not streamed
	}{
		"bedrock throttles":        {429, "ThrottlingException", `{"message":"Too many tokens, please wait before trying again."}`, ClassRateLimit, false},
		"bedrock throttles later":  {429, "ThrottlingException", `{"message":"Too many tokens, please wait before trying again."}`, ClassRateLimit, true},
		"bedrock throttles a day":  {429, "ThrottlingException", `{"message":"Too many tokens per day, please wait before trying again."}`, ClassRateLimit, false},
		"bedrock has a quota":      {400, "ServiceQuotaExceededException", `{"message":"Your request exceeds the service quota for your account."}`, ClassRateLimit, false},
		"bedrock is not ready":     {429, "ModelNotReadyException", `{"message":"The model is not ready for inference."}`, ClassRateLimit, false},
		"bedrock is unavailable":   {503, "ServiceUnavailableException", `{"message":"Bedrock is unable to process your request."}`, ClassOverloaded, false},
		"bedrock denies the model": {403, "AccessDeniedException", `{"message":"You don't have access to the model with the specified model ID."}`, ClassAuth, false},
		"bedrock knows no token":   {403, "ExpiredTokenException", `{"message":"The security token included in the request is expired"}`, ClassAuth, false},
		"bedrock knows no model":   {400, "ValidationException", `{"message":"The provided model identifier is invalid."}`, ClassModel, false},
		"bedrock retired a model":  {404, "ResourceNotFoundException", `{"message":"This model version has reached the end of its life."}`, ClassModel, false},
		"bedrock has no room":      {400, "ValidationException", `{"message":"Input is too long for requested model."}`, ClassContext, false},
		"vertex has a quota":       {429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for aiplatform.googleapis.com/online_prediction_requests_per_base_model"}}`, ClassRateLimit, false},
		"vertex is overloaded":     {429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Resource exhausted. Please try again later."}}`, ClassRateLimit, false},
		"vertex denies":            {403, "", `{"error":{"code":403,"status":"PERMISSION_DENIED","message":"Permission 'aiplatform.endpoints.predict' denied on resource."}}`, ClassAuth, false},
		"vertex knows no model":    {404, "", `{"error":{"code":404,"status":"NOT_FOUND","message":"Publisher Model was not found or your project does not have access to it."}}`, ClassModel, false},
		"foundry limits":           {429, "", `{"error":{"code":"429","message":"Requests have exceeded the rate limit of your current tier."}}`, ClassRateLimit, false},
		"foundry knows no key":     {401, "", `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, ClassAuth, false},
		"foundry knows no model":   {404, "", `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, ClassModel, false},
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
				if c.streamed && strings.HasSuffix(req.URL.Path, "/invoke-with-response-stream") {
					throttle(t, w)
					return
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
