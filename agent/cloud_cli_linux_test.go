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
}

// refusals begin with the name of the cloud.
var refusals = map[string]refusal{
	"bedrock throttles": {
		429, "ThrottlingException", "Too many tokens, please wait before trying again.", ClassRateLimit,
	},
	"bedrock throttles later": {
		429, "throttlingException", "Too many tokens, please wait before trying again.", ClassRateLimit,
	},
	"bedrock has a quota": {
		400, "ServiceQuotaExceededException",
		"Your request exceeds the service quota for your account.", ClassRateLimit,
	},
	"bedrock is unavailable": {
		503, "ServiceUnavailableException", "Bedrock is unable to process your request.", ClassOverloaded,
	},
	"bedrock knows no token": {
		403, "ExpiredTokenException", "The security token included in the request is expired", ClassAuth,
	},
	"bedrock knows no model": {
		400, "ValidationException", "The provided model identifier is invalid.", ClassModel,
	},
	"bedrock retired a model": {
		404, "ResourceNotFoundException", "This model version has reached the end of its life.", ClassModel,
	},
	"bedrock has no room": {
		400, "ValidationException", "Input is too long for requested model.", ClassContext,
	},
	"vertex has a quota": {
		429, "RESOURCE_EXHAUSTED", "Quota exceeded for aiplatform.googleapis.com/online_prediction", ClassRateLimit,
	},
	"vertex denies": {
		403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied on resource.", ClassAuth,
	},
	"vertex serves the model elsewhere": {
		400, "FAILED_PRECONDITION", "Publisher Model `projects/acme/x` is not servable in region eu.", ClassModel,
	},
	"vertex does not understand": {
		400, "INVALID_ARGUMENT", "max_tokens: must be positive", ClassRequest,
	},
	"vertex knows no model": {
		404, "NOT_FOUND", "Publisher Model was not found or your project does not have access to it.", ClassModel,
	},
	"foundry limits": {
		429, "429", "Requests have exceeded the rate limit of your current tier.", ClassRateLimit,
	},
	"foundry knows no key": {
		401, "401", "Access denied due to invalid subscription key or wrong API endpoint.", ClassAuth,
	},
	"foundry knows no model": {
		404, "DeploymentNotFound", "The API deployment for this resource does not exist.", ClassModel,
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
	model := newModel(t)
	model.Answer("", modelfake.Turn{Text: "Answered."})
	url := refusingCloud(t, "bedrock", refusal{
		403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", ClassModel,
	})
	aws := func(string) (cloud.Provider, error) { return clouds(t)["bedrock"](url) }
	r := newCLI(t, model, impatient, func(cfg *Config) {
		cfg.Credential = Credential{}
		cfg.Credentials = []ModelCredential{{Name: "aws", Cloud: aws}, {Name: "key", APIKey: "sk-ant-key-2"}}
	})
	answersWithTheKey(t, r, ClassModel)
}

// Refusals in the forms of the clouds end a run with the class that says what can be done.
func TestCLIErrorsOfClouds(t *testing.T) {
	t.Parallel()
	all := clouds(t)
	for title, r := range refusals {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(title, " ")
			url := refusingCloud(t, name, r)
			it := ModelCredential{Name: "it", Cloud: func(string) (cloud.Provider, error) { return all[name](url) }}
			cli := newCLI(t, newModel(t), impatient, func(cfg *Config) {
				cfg.BaseURL, cfg.Credential, cfg.Credentials = "", Credential{}, []ModelCredential{it}
			})
			id := strings.ReplaceAll(title, " ", "-")
			res := runCLI(t, cli, Spec{ID: id, Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read}, &host{})
			if e := res.Error; e == nil || e.Class != r.class || e.User != NewError(r.class, "").User {
				t.Errorf("%s, %+v, want %s", res.Outcome, res.Error, r.class)
			}
		})
	}
}
