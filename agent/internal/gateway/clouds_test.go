package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/cloud"
)

// sky is a cloud whose models are at /ask/MODEL.
type sky struct {
	base *url.URL

	mu   sync.Mutex
	fail error
}

func (*sky) Name() string                              { return "Sky" }
func (*sky) Host() string                              { return "sky.example" }
func (*sky) Environment(base string) map[string]string { return map[string]string{"SKY_URL": base} }
func (*sky) Smallest(model string) (path, named, version string) {
	return "/ask/" + model, model, "sky-1"
}
func (s *sky) Direct(u *url.URL) { cloud.Redirect(u, s.base) }

func (*sky) Question(method, path string) (q cloud.Question, ok bool) {
	name, ok := strings.CutPrefix(path, "/ask/")
	if path == "/count" {
		return cloud.Question{Free: true}, true
	}
	if path == "/list" {
		return cloud.Question{Free: true}, method == http.MethodGet
	}
	model, err := url.PathUnescape(name)
	return cloud.Question{Model: model}, ok && err == nil && method == http.MethodPost
}

func (s *sky) Sign(req *http.Request, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Header.Set("Authorization", "signed "+string(body))
	return s.fail
}

// arrived is what the cloud got.
type arrived struct {
	path   string
	header http.Header
	body   string
}

// newSky starts a gateway to a cloud.
func newSky(t *testing.T, run Run) (s *sky, base string, requests func() []arrived) {
	t.Helper()
	var mu sync.Mutex
	var all []arrived
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, arrived{req.RequestURI, req.Header, string(body)})
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","usage":{"input_tokens":1000000,"output_tokens":0}}`)
	})
	base9, err := cloud.Base(server.URL + "/v9")
	if err != nil {
		t.Fatal(err)
	}
	s = &sky{base: base9}
	u := upstream(t, Config{
		Credentials: []Named{{Cloud: s}},
		Headers:     http.Header{"X-Team": {"platform"}},
	})
	run.Note = func(string, ...any) {}
	g, err := u.Open(run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	access := u.Access(g)
	if access.BaseURL != "" || access.Credential != (Credential{}) {
		t.Errorf("access %+v", access)
	}
	return s, access.Cloud["SKY_URL"], func() []arrived {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func send(t *testing.T, method, address, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return answerTo(t, req)
}

// The run's token is in the path, and goes no further. What the gateway signs has only the headers that a run needs.
func TestCloudGetsSignedRequests(t *testing.T) {
	t.Parallel()
	s, base, requests := newSky(t, Run{})
	body := `{"max_tokens":1,"anthropic_beta":["interleaved-thinking-2025-05-14"]}`
	status, _ := send(t, http.MethodPost, base+"/ask/eu.anthropic.claude-opus-5-5%2Fx:0?key=1", body,
		"X-Goog-User-Project", "rich", "X-Amzn-Bedrock-Service-Tier", "priority", "Authorization", "Bearer stolen",
		"Anthropic-Version", "2023-06-01", "X-Api-Key", "k")
	if status != http.StatusNotFound { // %2F is a part of the name, and such a model is not known
		t.Errorf("another model: %d", status)
	}
	status, _ = send(t, http.MethodPost, base+"/ask/eu.anthropic.claude-opus-5-5-v1%3A0?key=1", body,
		"X-Goog-User-Project", "rich", "X-Amzn-Bedrock-Service-Tier", "priority", "Authorization", "Bearer stolen",
		"Anthropic-Version", "2023-06-01", "X-Api-Key", "k")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	if status, _ := send(t, http.MethodGet, base+"/list?type=x", ""); status != http.StatusOK {
		t.Errorf("list: %d", status)
	}
	got := requests()
	if len(got) != 2 || got[0].path != "/v9/ask/eu.anthropic.claude-opus-5-5-v1%3A0" || got[0].body != body ||
		got[1].path != "/v9/list?type=x" {
		t.Fatalf("%+v", got)
	}
	for name, want := range map[string]string{
		"Authorization": "signed " + body, "X-Team": "platform", "Anthropic-Version": "2023-06-01",
		"X-Goog-User-Project": "", "X-Amzn-Bedrock-Service-Tier": "", "X-Api-Key": "",
	} {
		if v := got[0].header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
	s.mu.Lock()
	s.fail = errors.New("no role")
	s.mu.Unlock()
	if status, text := send(t, http.MethodPost, base+"/ask/claude-opus-5-5", `{}`); status != http.StatusUnauthorized ||
		!strings.Contains(text, "Sky cannot be asked") || strings.Contains(text, "role") {
		t.Errorf("without a credential: %d %s", status, text)
	}
	for name, err := range map[string]error{
		"refused": &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "timeout": context.DeadlineExceeded,
		"no name server": &net.DNSError{IsTimeout: true}, "unreachable": cloud.ErrUnreachable,
	} {
		s.mu.Lock()
		s.fail = fmt.Errorf("renew: %w", err)
		s.mu.Unlock()
		status, text := send(t, http.MethodPost, base+"/ask/claude-opus-5-5", `{}`)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "overloaded_error") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
}

// While the credential of one account cannot be fetched, runs start with another one.
func TestCloudWithoutACredential(t *testing.T) {
	t.Parallel()
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	base, err := cloud.Base(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := several(t, newBank(t), Named{Name: "a", Cloud: &sky{base: base, fail: context.DeadlineExceeded}},
		Named{Name: "b", Cloud: &sky{base: base}})
	g := open(t, u)
	status, text := send(t, http.MethodPost, u.Access(g).Cloud["SKY_URL"]+"/ask/claude-opus-5-5", `{}`)
	if until := u.States()["a"].Until; status != http.StatusServiceUnavailable || time.Until(until) > time.Minute ||
		until.IsZero() {
		t.Errorf("status %d %s, held until %v", status, text, until)
	}
	if next := open(t, u); next.lease.key.Name != "b" {
		t.Errorf("the next run has %s", next.lease.key.Name)
	}
}

func TestCloudRefuses(t *testing.T) {
	t.Parallel()
	_, base, requests := newSky(t, Run{MaxUSD: 1})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	other := u.Scheme + "://" + u.Host
	for name, c := range map[string]struct {
		method, address, body string
		status                int
	}{
		"no token":      {http.MethodPost, other + "/ask/claude-opus-5-5", "{}", http.StatusUnauthorized},
		"a wrong token": {http.MethodPost, other + "/sk-ant-run-x/ask/claude-opus-5-5", "{}", http.StatusUnauthorized},
		"other path":    {http.MethodPost, base + "/accounts", "{}", http.StatusNotFound},
		"dots":          {http.MethodPost, base + "/ask/../accounts", "{}", http.StatusNotFound},
		"other method":  {http.MethodDelete, base + "/ask/claude-opus-5-5", "", http.StatusNotFound},
		"other model":   {http.MethodPost, base + "/ask/meta.llama", "{}", http.StatusNotFound},
		"unknown beta": {
			http.MethodPost, base + "/ask/claude-opus-5-5", `{"anthropic_beta":["fast-mode-2026-02-01"]}`,
			http.StatusBadRequest,
		},
		"not JSON": {http.MethodPost, base + "/ask/claude-opus-5-5", `x`, http.StatusBadRequest},
	} {
		if status, text := send(t, c.method, c.address, c.body); status != c.status {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if got := requests(); len(got) > 0 {
		t.Errorf("passed: %+v", got)
	}
	if status, _ := send(t, http.MethodPost, base+"/ask/claude-opus-5-5", `{"max_tokens":1}`); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if status, _ := send(t, http.MethodPost, base+"/ask/claude-opus-5-5",
		`{"max_tokens":1}`); status != http.StatusPaymentRequired {
		t.Errorf("above the maximum of the run: %d", status)
	}
}

// Names of models that the operator gives count as those of their family, also if they do not show it.
func TestCloudModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed []string
		names   map[string]string
		model   string
		want    bool
	}{
		"offered by the CLI": {nil, nil, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", true},
		"another account": {
			nil, nil, "arn:aws:bedrock:us-east-1:999:inference-profile/us.anthropic.claude-haiku-4-5", false,
		},
		"another vendor": {nil, nil, "amazon.nova-pro-v1:0", false},
		"not chosen":     {[]string{"sonnet"}, nil, "eu.anthropic.claude-opus-5-5", false},
		"small":          {[]string{"sonnet"}, nil, "us.anthropic.claude-haiku-4-5-20251001-v1:0", true},
		"a profile": {
			[]string{"sonnet"},
			map[string]string{"sonnet": "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"},
			"arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", true,
		},
		"profile not chosen": {
			[]string{"sonnet"},
			map[string]string{"opus": "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"},
			"arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc", false,
		},
	} {
		k := &key{Named: Named{Cloud: &sky{}, Names: c.names}}
		if got := among(k.models("", c.allowed), c.model); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A refusal of a cloud holds its credential if that, or a quota of its account, is the reason. The next run is in
// another account, at that account's address.
func TestCloudAccounts(t *testing.T) {
	t.Parallel()
	const aws = "X-Amzn-Errortype"
	for name, c := range map[string]struct {
		status       int
		header       http.Header
		text, path   string
		held         bool
		holdsAtLeast time.Duration
	}{
		"a day's quota": {
			status: 429, header: http.Header{aws: {"ThrottlingException:http://x"}},
			text: `{"message":"Too many tokens per day, please wait"}`, held: true,
			holdsAtLeast: 4 * time.Minute,
		},
		"a service quota": {
			status: 400, header: http.Header{aws: {"ServiceQuotaExceededException"}}, text: `{}`, held: true,
		},
		"a minute's quota": {
			status: 429, text: `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded for aiplatform"}}`,
			held: true, holdsAtLeast: 50 * time.Second,
		},
		"a tier's limit": {
			status: 429, header: http.Header{"Retry-After": {"60"}}, text: `{"error":{"code":"429"}}`, held: true,
		},
		"expired": {
			status: 403, header: http.Header{aws: {"ExpiredTokenException"}}, text: `{}`, held: true,
		},
		"unauthenticated": {
			status: 401, text: `{"error":{"status":"UNAUTHENTICATED"}}`, held: true,
		},
		"lacks the model": {
			status: 403, header: http.Header{aws: {"AccessDeniedException"}},
			text: `{"message":"You don't have access to the model with the specified model ID."}`, held: true,
		},
		"lacks the right": {
			status: 403, header: http.Header{aws: {"AccessDeniedException"}},
			text: `{"message":"User: x is not authorized to perform: bedrock:InvokeModel"}`, held: true,
		},
		"lacks the profile": {
			status: 403, header: http.Header{aws: {"AccessDeniedException"}},
			text: `{"message":"User: x is not authorized to perform: bedrock:InvokeModel on resource: arn:aws:bedrock:eu-west-1:1:inference-profile/y"}`, held: true,
		},
		"throttled counting": {
			status: 429, header: http.Header{"Retry-After": {"60"}}, text: `{}`, path: "/count",
		},
		"throttled": {
			status: 429, header: http.Header{aws: {"ThrottlingException"}},
			text: `{"message":"Too many tokens, please wait"}`,
		},
		"overloaded": {
			status: 429,
			text:   `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Resource exhausted. Please try again later."}}`,
		},
		"speaks of a quota": {
			status: 429, text: `{"error":{"message":"Quota exceeded"}}`, // in no cloud's words
		},
		"wrong question": {
			status: 400, header: http.Header{aws: {"ValidationException"}}, text: `{}`,
		},
		"may not list": {
			status: 403, header: http.Header{aws: {"AccessDeniedException"}}, text: `{}`, path: "/list",
		},
		"is refused a list": {
			status: 403, header: http.Header{aws: {"UnrecognizedClientException"}}, text: `{}`,
			path: "/list",
		},
		"may not count": {
			status: 403, header: http.Header{aws: {"AccessDeniedException"}}, text: `{}`, path: "/count",
		},
		"refused, of a count": {status: 401, text: `{}`, path: "/count"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasPrefix(req.URL.Path, "/a/") {
					maps.Copy(w.Header(), c.header)
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.text)
				}
			})
			in := func(name string) Named {
				base, err := cloud.Base(server.URL + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				return Named{Name: name, Cloud: &sky{base: base}}
			}
			u, _ := several(t, newBank(t), in("a"), in("b"), apiKey("key"))
			g := open(t, u)
			address, method := u.Access(g).Cloud["SKY_URL"], http.MethodPost
			if c.path == "/list" {
				method = http.MethodGet
			}
			status, text := send(t, method, address+cmp.Or(c.path, "/ask/claude-opus-5-5"),
				`{"model":"claude-opus-5-5"}`)
			if status != c.status || text != c.text {
				t.Errorf("%d %s", status, text)
			}
			if until := u.States()["a"].Until; until.IsZero() == c.held || c.held && time.Until(until) < c.holdsAtLeast {
				t.Errorf("held until %v", until)
			}
			u.keys.keys[0].runs, u.keys.keys[2].runs = 0, 9
			next := open(t, u)
			status, _ = send(t, http.MethodPost, u.Access(next).Cloud["SKY_URL"]+"/ask/claude-opus-5-5", `{}`)
			if want := map[bool]string{false: "a", true: "b"}[c.held]; next.Seen().Credential != want ||
				c.held && status != http.StatusOK {
				t.Errorf("the next run has %s, %d", next.Seen().Credential, status)
			}
		})
	}
}

// denying returns an upstream with an account of AWS that denies access to Opus, and an API key.
func denying(t *testing.T, message string) *Upstream {
	t.Helper()
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(req.URL.Path, "opus") {
			w.Header().Set("X-Amzn-Errortype", "AccessDeniedException")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, message)
			return
		}
		_, _ = io.WriteString(w, `{"usage":{"input_tokens":1,"output_tokens":1}}`)
	})
	base, err := cloud.Base(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	u, _ := several(t, newBank(t), Named{Name: "aws", Cloud: &sky{base: base}}, apiKey("key"))
	return u
}

// A run that was served and then asks for what its account lacks or its policy forbids does not take it from the others,
// and is not repeated: it would meet the same refusal.
func TestChoiceOfARunHoldsNothing(t *testing.T) {
	t.Parallel()
	const forbidden = "x is not authorized to perform: bedrock:InvokeModel on resource: y"
	for _, message := range []string{forbidden, "You don't have access to the model."} {
		u := denying(t, message)
		g := open(t, u)
		for _, q := range []struct {
			model  string
			status int
		}{{"claude-sonnet-5", http.StatusOK}, {"claude-opus-5-5", http.StatusForbidden}} {
			status, text := send(t, http.MethodPost, u.Access(g).Cloud["SKY_URL"]+"/ask/"+q.model, `{}`)
			if status != q.status {
				t.Errorf("%s: %d %s", q.model, status, text)
			}
		}
		for name, state := range u.States() {
			if !state.Until.IsZero() {
				t.Errorf("%s is held until %v", name, state.Until)
			}
		}
		if at := g.Seen().FreeAt; !at.IsZero() {
			t.Errorf("%s: the run is to be repeated at %v", message, at)
		}
		for _, p := range u.Check(t.Context(), "claude-opus-5-5") {
			if p.Denied != (p.Name == "aws") {
				t.Errorf("checked %+v", p)
			}
		}
	}
}

// A credential may have other headers than the rest.
func TestHeadersOfACredential(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	server := serve(t, func(_ http.ResponseWriter, req *http.Request) {
		got <- req.Header.Get("X-Team")
	})
	none := apiKey("none")
	none.Headers = http.Header{}
	u := upstream(t, Config{
		BaseURL: server.URL, Credentials: []Named{apiKey("all"), none},
		Headers: http.Header{"X-Team": {"platform"}},
	})
	for name, want := range map[string]string{"all": "platform", "none": ""} {
		ask(t, open(t, u, name))
		if team := <-got; team != want {
			t.Errorf("%s: %q", name, team)
		}
	}
}

// The CLI is started for the credential that a run gets: in the mode of its cloud, or with a token for its API.
func TestAccessFollowsTheCredential(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	in := Named{
		Name: "aws", Cloud: &sky{}, Names: map[string]string{"sonnet": "eu.sonnet"},
		Prices: PriceList{{Pattern: "*"}},
	}
	u, _ := several(t, b, in, apiKey("key"))
	first := open(t, u)
	if a := u.Access(first); a.Cloud["SKY_URL"] == "" || a.Credential != (Credential{}) ||
		a.Names["sonnet"] != "eu.sonnet" || len(first.seen.prices) != 1 || !first.allows("eu.sonnet") {
		t.Errorf("in the cloud: %+v", a)
	}
	u.keys.hold(u.keys.keys[0], time.Now().Add(time.Hour), http.StatusForbidden)
	second := open(t, u)
	if a := u.Access(second); a.Cloud != nil || a.Credential.APIKey == "" || a.Names != nil ||
		len(second.seen.prices) != 0 {
		t.Errorf("with a key: %+v", a)
	}
	if status, _ := ask(t, second); status != http.StatusOK || !slices.Equal(b.taken(), []string{"key-key"}) {
		t.Errorf("status %d", status)
	}
}
