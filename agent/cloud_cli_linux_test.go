package agent

import (
	"fmt"
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
	"github.com/errand-fleet/errand/internal/fake/cloudfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
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
			c := vertex.Config{Project: "acme", Region: "eu", File: file, Endpoint: base + "/v1"}
			return vertex.New(t.Context(), c)
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

// refusal is what a cloud says when it refuses a question, and the class of a run that ends with it.
type refusal struct {
	status  int
	kind    string // a small letter at its beginning: Bedrock says it in an answer that it has begun
	message string
	class   Class
	live    bool
}

// refusals are scenarios, whose names begin with the name of the cloud.
var refusals = map[string]refusal{
	"bedrock-throttles": {
		status: 429, kind: "ThrottlingException", class: ClassRateLimit,
		message: "Too many tokens, please wait before trying again.",
	},
	"bedrock-throttles-later": {
		status: 429, kind: "throttlingException", live: true, class: ClassRateLimit,
		message: "Too many tokens, please wait before trying again.",
	},
	"bedrock-has-a-quota": {
		status: 400, kind: "ServiceQuotaExceededException",
		message: "Your request exceeds the service quota for your account.", class: ClassRateLimit,
	},
	"bedrock-is-unavailable": {
		status: 503, kind: "ServiceUnavailableException", class: ClassOverloaded,
		message: "Bedrock is unable to process your request.",
	},
	"bedrock-knows-no-token": {
		status: 403, kind: "ExpiredTokenException", class: ClassAuth,
		message: "The security token included in the request is expired",
	},
	"bedrock-knows-no-model": {
		status: 400, kind: "ValidationException", class: ClassModel,
		message: "The provided model identifier is invalid.",
	},
	"bedrock-retired-a-model": {
		status: 404, kind: "ResourceNotFoundException", class: ClassModel,
		message: "This model version has reached the end of its life.",
	},
	"bedrock-has-no-room": {
		status: 400, kind: "ValidationException", class: ClassContext,
		message: "Input is too long for requested model.",
	},
	"vertex-has-a-quota": {
		status: 429, kind: "RESOURCE_EXHAUSTED", class: ClassRateLimit,
		message: "Quota exceeded for aiplatform.googleapis.com/online_prediction",
	},
	"vertex-denies": {
		status: 403, kind: "PERMISSION_DENIED", class: ClassAuth,
		message: "Permission 'aiplatform.endpoints.predict' denied on resource.",
	},
	"vertex-serves-the-model-elsewhere": {
		status: 400, kind: "FAILED_PRECONDITION", live: true, class: ClassModel,
		message: "Publisher Model `projects/acme/x` is not servable in region eu.",
	},
	"vertex-does-not-understand": {
		status: 400, kind: "INVALID_ARGUMENT", class: ClassRequest,
		message: "max_tokens: must be positive",
	},
	"vertex-knows-no-model": {
		status: 404, kind: "NOT_FOUND", class: ClassModel,
		message: "Publisher Model was not found or your project does not have access to it.",
	},
	"foundry-limits": {
		status: 429, kind: "429", class: ClassRateLimit,
		message: "Requests have exceeded the rate limit of your current tier.",
	},
	"foundry-knows-no-key": {
		status: 401, kind: "401", live: true, class: ClassAuth,
		message: "Access denied due to invalid subscription key or wrong API endpoint.",
	},
	"foundry-knows-no-model": {
		status: 404, kind: "DeploymentNotFound", class: ClassModel,
		message: "The API deployment for this resource does not exist.",
	},
}

// body is a refusal in the form of a cloud.
func (r refusal) body(name string) string {
	switch name {
	case "bedrock":
		return fmt.Sprintf(`{"message":%q}`, r.message)
	case "vertex":
		return fmt.Sprintf(`{"error":{"code":%d,"status":%q,"message":%q}}`, r.status, r.kind, r.message)
	}
	return fmt.Sprintf(`{"error":{"code":%q,"message":%q}}`, r.kind, r.message)
}

// refusingCloud is a cloud that refuses all questions.
func refusingCloud(t *testing.T, name string, r refusal) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		begun := r.kind == "throttlingException" && strings.HasSuffix(req.URL.Path, "/invoke-with-response-stream")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case req.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"inferenceProfileSummaries":[]}`)
		case begun: // the CLI then asks for an answer that is not streamed
			throttle(t, w)
		default:
			w.Header().Set("X-Amzn-Errortype", r.kind)
			w.WriteHeader(r.status)
			_, _ = io.WriteString(w, r.body(name))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A task whose account of AWS lacks the model can be repeated with a credential of another kind.
func TestCLIModelDeniedByACloud(t *testing.T) {
	t.Parallel()
	model := newModel(t, modelfake.Turn{Text: "Answered."})
	url := refusingCloud(t, "bedrock", refusal{
		status: 403, kind: "AccessDeniedException",
		message: "You don't have access to the model with the specified model ID.",
	})
	aws := func(string) (cloud.Provider, error) { return clouds(t)["bedrock"](url) }
	r := newCLI(t, model, impatient, func(cfg *Config) {
		cfg.Credential = Credential{}
		cfg.Credentials = []ModelCredential{{Name: "aws", Cloud: aws}, {Name: "key", APIKey: "sk-ant-key-2"}}
	})
	res := runCLI(t, r, Spec{ID: "other-cloud"}, &host{})
	if e := res.Error; e == nil || e.Class != ClassModel || res.Retry() != RetryReset || res.RetryAt.IsZero() ||
		res.RetryAt.After(time.Now()) {
		t.Errorf("%v, again %s at %v", res.Error, res.Retry(), res.RetryAt)
	}
	if res := runCLI(t, r, Spec{ID: "other-cloud"}, &host{}); res.Text != "Answered." || res.API.Credential != "key" {
		t.Errorf("then %v, %+v", res.Error, res.API)
	}
}

// inCloud has the model in a cloud that refuses all questions. Its name begins with that of the cloud.
func inCloud(t *testing.T, c *Config, name string, r refusal) {
	t.Helper()
	name, _, _ = strings.Cut(name, "-")
	provider, url := clouds(t)[name], refusingCloud(t, name, r)
	c.BaseURL, c.Credential = "", Credential{}
	c.Credentials = []ModelCredential{{Name: "it", Cloud: func(string) (cloud.Provider, error) { return provider(url) }}}
}
