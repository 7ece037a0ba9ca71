package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/internal/redact"
)

// checkLimit bounds one probe, including the time to get a token. `enqueue doctor` waits twice as long for all checks.
const checkLimit = 15 * time.Second

// Probe is the result of a one-token request with one credential.
type Probe struct {
	Name    string // of the credential
	Host    string // the host of the request, or the name of a cloud
	Status  int    // HTTP status; 0 without an answer
	Problem string // empty on success
	Denied  bool   // the account lacks the model, or its policy forbids it
	Closed  bool   // no request was sent: only the CLI may use a subscription
}

// Check sends a one-token request with each credential, in the same way as the gateways of runs. The results do not
// change whether a credential is held. An empty model is the one that the CLI starts with.
func (u *Upstream) Check(ctx context.Context, model string) []Probe {
	list := make([]Probe, len(u.keys.keys))
	var all sync.WaitGroup
	for i, k := range u.keys.keys {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkLimit)
			defer cancel()
			list[i] = u.check(ctx, k, model)
		})
	}
	all.Wait()
	return list
}

func (u *Upstream) check(ctx context.Context, k *key, model string) Probe {
	c := Probe{Name: k.Name, Host: u.url.Host}
	if k.Cloud != nil {
		c.Host = k.Cloud.Name()
	}
	if c.Closed = k.OAuthToken != ""; c.Closed {
		return c
	}
	req, err := u.smallest(ctx, k, k.modelName(model))
	if err == nil && k.Cloud != nil {
		body, _ := req.GetBody() // in memory
		text, _ := io.ReadAll(body)
		err = k.Cloud.Sign(req.Clone(ctx), text) // gives a more precise error than the answer to a run
	}
	if s, ok := k.transport.(*signer); ok && err == nil && s.fetch != nil {
		_, err = s.current(ctx, "") // likewise
	}
	var res *http.Response
	if err == nil {
		res, err = k.transport.RoundTrip(req)
	}
	if err != nil {
		c.Problem = redact.Clip(err.Error(), 300)
		return c
	}
	defer res.Body.Close()
	if c.Status = res.StatusCode; c.Status != http.StatusOK {
		c.Problem, c.Denied = sentence(res), deniesModel(res) || deniesResource(res)
	}
	return c
}

// modelName returns the provider's name for a model, which may be given as the name of a family.
func (k *key) modelName(name string) string {
	if known, ok := k.Names[name]; ok {
		return known
	}
	if i := slices.IndexFunc(cliModels, func(id string) bool {
		return slices.Contains(families, name) && family(id) == name
	}); i >= 0 {
		return cliModels[i]
	}
	return name
}

// smallest returns a one-token request. It has the credential only if that is a header.
func (u *Upstream) smallest(ctx context.Context, k *key, model string) (*http.Request, error) {
	question := map[string]any{"max_tokens": 1, "messages": []map[string]string{{"role": "user", "content": "Say OK."}}}
	path, version := messagesPath, ""
	if k.Cloud != nil {
		path, model, version = k.Cloud.Smallest(model)
	} else if model == "" {
		model = cliModels[0]
	}
	if version != "" { // the path names the model
		question["anthropic_version"] = version
	} else {
		question["model"] = model
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	if k.Cloud != nil {
		k.Cloud.Direct(req.URL)
		return req, nil
	}
	cloud.Redirect(req.URL, u.url)
	if k.Credential != (Credential{}) {
		req.Header.Set(k.header())
	}
	return req, nil
}

// sentence returns the provider's own sentence in a refusal.
func sentence(res *http.Response) string {
	text := refusalText(res)
	var refusal struct {
		Message string `json:"message"` // Bedrock's, sometimes with a capital
		Error   struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	lenient := json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true),
		json.MatchCaseInsensitiveNames(true))
	_ = json.Unmarshal(text, &refusal, lenient) // otherwise the text itself
	for _, said := range []string{refusal.Error.Message, refusal.Message, string(text)} {
		if said = strings.TrimSpace(said); said != "" {
			return res.Status + ": " + redact.Clip(said, 300)
		}
	}
	return res.Status
}
