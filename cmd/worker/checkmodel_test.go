package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/fake/cloudfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/tasks/capacity"
)

// The CLI of the machine is compared with the tested one. The check of the model asks as a run would, and says what is
// wrong in the provider's words.
func TestCheckModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check := func(command string) (code int, said string) {
		var out strings.Builder
		code = run(t.Context(), invocation{[]string{command}, w.getenv, &out, &out}, assemble.Options{})
		return code, out.String()
	}
	want := "the CLI is version " + agent.TestedCLI + "; errand is tested with " + agent.TestedCLI + "\n"
	if code, said := check("check-cli"); code != 0 || said != want {
		t.Errorf("exit %d: %s", code, said)
	}
	env := maps.Clone(w.env)
	for name, c := range map[string]struct {
		turn modelfake.Turn
		env  map[string]string
		code int
		says string
	}{
		"answers": {modelfake.Turn{Text: "OK"}, nil, 0, "ok: claude-"},
		"refused": {
			modelfake.Turn{Status: http.StatusForbidden, Message: "This organization has been disabled."},
			nil, 1,
			"This organization has been disabled.",
		},
		"no model": {
			modelfake.Turn{Status: http.StatusNotFound, Message: "model: claude-opus-5-5"},
			nil, 1,
			"Set ERRAND_MODEL to a model of the account",
		},
		"no CLI":  {modelfake.Turn{}, map[string]string{"ERRAND_CLAUDE": "/nowhere/claude"}, 1, "set ERRAND_CLAUDE"},
		"setting": {modelfake.Turn{}, map[string]string{"ERRAND_GATEWAY": "no"}, 1, "ERRAND_GATEWAY must be on or off"},
	} {
		w.model.Answer("", c.turn)
		w.env = maps.Clone(env)
		maps.Copy(w.env, c.env)
		if code, said := check("check-model"); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
	}
}

// checkModel runs the check in a separate process, whose environment has the credentials.
func (w *world) checkModel() (out []byte, err error) {
	w.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{underTest, "check-model"}
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd.CombinedOutput()
}

// modelFor returns the URL of a model that refuses all keys and tokens but these.
func (w *world) modelFor(keys ...string) string {
	w.Helper()
	behind, err := url.Parse(w.model.URL())
	if err != nil {
		w.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if slices.Contains(keys, req.Header.Get("X-Api-Key")) ||
			slices.Contains(keys, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")) {
			proxy.ServeHTTP(rw, req)
			return
		}
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw,
			`{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
	}))
	w.Cleanup(s.Close)
	return s.URL
}

// The check asks with each credential, and says what is wrong in the provider's words.
func TestCheckCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("", modelfake.Turn{Text: "OK"})
	s := cloudfake.NewBedrock(w.model.URL(), time.Hour)
	t.Cleanup(s.Close)
	s.Account("AKIAGOODACCOUNT00001", "aws-secret-good", false)
	model := w.modelFor("key-that-is-good-4715", "key-that-is-printed-4713")
	file, profiles := filepath.Join(t.TempDir(), "credential"), ""
	for name, id := range map[string]string{"good": "AKIAGOODACCOUNT00001", "bad": "AKIAGONEACCOUNT00001"} {
		profiles += fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = aws-secret-%s\naws_session_token = token-of-%s\n", name, id, name, id)
	}
	w.write(file, profiles)
	printed := filepath.Join(t.TempDir(), "token")
	w.write(printed, "key-that-is-printed-4713\n")
	delete(w.env, "ANTHROPIC_API_KEY")
	w.env["HOME"], w.env["AWS_SHARED_CREDENTIALS_FILE"], w.env["ANTHROPIC_BEDROCK_BASE_URL"] =
		t.TempDir(), file, s.URL()
	w.env["ANTHROPIC_BASE_URL"], w.env["GOOD"], w.env["BAD"], w.env["ERRAND_MODEL"] =
		model, "key-that-is-good-4715", "key-that-is-bad-4716", "opus"
	w.write(w.env["ERRAND_CONFIG"], "repositories: {"+repo+": {trusted: true}}\nchannels: {"+
		channel+": {repository: "+repo+`}}
credentials:
  - {name: key, api_key: '{{env "GOOD"}}'}
  - {name: bad-key, api_key: '{{env "BAD"}}'}
  - {name: vault, token_command: cat `+printed+`}
  - {name: aws, provider: bedrock, region: `+cloudfake.Region+`, profile: good}
  - {name: gone, provider: bedrock, region: `+cloudfake.Region+`, profile: bad}
  - {name: model, provider: bedrock, region: `+cloudfake.Region+`, profile: good, models: {opus: us.anthropic.claude-opus-5-5}}
`)
	out, err := w.checkModel()
	if err == nil {
		t.Error("it succeeded")
	}
	host := strings.TrimPrefix(model, "http://")
	for _, line := range []string{
		"ok: credential key for the model: " + host + " answers\n",
		"credential bad-key for the model does not work at " + host +
			": 401 Unauthorized: invalid x-api-key\nSet a valid credential",
		"ok: credential aws for the model: Amazon Bedrock answers\n",
		"ok: credential vault for the model: " + host + " answers\n",
		"credential gone for the model does not work at Amazon Bedrock: 403 Forbidden: The security token included in the request is expired\nSet a valid credential",
		"credential model for the model does not work at Amazon Bedrock: 400 Bad Request: The provided model identifier is invalid.\nSet ERRAND_MODEL to a model of the account",
		"check the model: 3 of the credentials do not work",
	} {
		if !strings.Contains(string(out), line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if bytes.Contains(out, []byte("key-that-is")) || bytes.Contains(out, []byte("aws-secret")) {
		t.Errorf("it shows a credential: %s", out)
	}
}

// The check asks Vertex AI and Foundry with tokens that they verify, and says what is wrong in their words.
func TestCheckClouds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("", modelfake.Turn{Text: "OK"})
	google, key, err := cloudfake.NewVertex(w.model.URL(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(google.Close)
	azure, certificate := cloudfake.NewFoundry(w.model.URL(), time.Hour)
	t.Cleanup(azure.Close)
	dir := t.TempDir()
	w.write(filepath.Join(dir, "google.json"), string(key))
	w.write(filepath.Join(dir, "azure.pem"), string(certificate))
	delete(w.env, "ANTHROPIC_API_KEY")
	delete(w.env, "ANTHROPIC_BASE_URL")
	maps.Copy(w.env, map[string]string{
		"HOME": dir, "SSL_CERT_FILE": filepath.Join(dir, "azure.pem"), "BAD": "key-that-is-bad-4720",
		"ANTHROPIC_VERTEX_BASE_URL": google.URL() + "/v1", "ANTHROPIC_FOUNDRY_BASE_URL": azure.URL() + "/anthropic",
		"AZURE_TENANT_ID": cloudfake.Tenant, "AZURE_CLIENT_ID": cloudfake.Client,
		"AZURE_CLIENT_SECRET": cloudfake.ClientSecret, "AZURE_AUTHORITY_HOST": azure.URL(),
	})
	vertex := "{provider: vertex, region: " + cloudfake.VertexRegion + ", file: " + dir + "/google.json, "
	w.write(w.env["ERRAND_CONFIG"], `credentials:
  - `+vertex+`name: google, project: `+cloudfake.Project+`}
  - `+vertex+`name: elsewhere, project: other-models}
  - {name: azure, provider: foundry, resource: acme}
  - {name: bad-key, provider: foundry, resource: acme, api_key: '{{env "BAD"}}'}
`)
	out, err := w.checkModel()
	if err == nil {
		t.Error("it succeeded")
	}
	for _, line := range []string{
		"ok: credential google for the model: Google Vertex AI answers\n",
		"credential elsewhere for the model does not work at Google Vertex AI: 404 Not Found: ",
		"ok: credential azure for the model: Microsoft Foundry answers\n",
		"credential bad-key for the model does not work at Microsoft Foundry: 401 Unauthorized: Access denied due to " +
			"invalid subscription key or wrong API endpoint.\nSet a valid credential",
		"check the model: 2 of the credentials do not work",
	} {
		if !strings.Contains(string(out), line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if bytes.Contains(out, []byte("key-that-is")) || bytes.Contains(out, []byte(cloudfake.ClientSecret)) {
		t.Errorf("it shows a credential: %s", out)
	}
}

// The check asks with each subscription, with a separate task, and with credentials that are only for some runs.
func TestCheckSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("", modelfake.Turn{Text: "OK"})
	delete(w.env, "ANTHROPIC_API_KEY")
	w.env["ONE"], w.env["TWO"], w.env["KEY"] = "subscription-one-4717", "subscription-two-4718", "key-that-is-good-4719"
	w.write(w.env["ERRAND_CONFIG"], "repositories: {"+repo+": {}}\npeople: {ann: {github: ann}}"+`
credentials:
  - {name: one, oauth_token: '{{env "ONE"}}', repositories: [`+repo+`]}
  - {name: two, oauth_token: '{{env "TWO"}}', people: [ann]}
  - {name: key, api_key: '{{env "KEY"}}', people: [ann]}
`)
	out, err := w.checkModel()
	for _, line := range []string{
		"ok: credential one: claude-", "ok: credential two: claude-", "ok: credential key for the model: ",
		"ok: claude-",
	} {
		if !strings.Contains(string(out), line) {
			t.Errorf("%q is missing", line)
		}
	}
	keys := map[string]bool{}
	for _, q := range w.model.Requests() {
		keys[q.Key] = true
	}
	if err != nil || len(keys) != 3 {
		t.Errorf("%v, asked with %v: %s", err, keys, out)
	}
}

// The doctor of a standalone process asks the model itself. A front door, which has no credential, says what workers
// know.
func TestDoctorAsksTheModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn modelfake.Turn
		says []string
	}{
		"good": {modelfake.Turn{Text: "OK"}, []string{`the credential for the model: 127.0.0.1:`, ` answers"`}},
		"bad": {
			modelfake.Turn{Status: http.StatusForbidden, Message: "This organization has been disabled."},
			[]string{`"error"`, `"403 Forbidden: This organization has been disabled."`, "Set a valid credential"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.model.Answer("", c.turn)
			base := w.standalone()
			got := w.get(base + "/api/health/services")
			// each question costs
			if again := w.get(base + "/api/health/services"); again != got || len(w.model.Requests()) != 1 {
				t.Errorf("asked %d times: %s", len(w.model.Requests()), again)
			}
			for _, text := range c.says {
				if !strings.Contains(got, text) {
					t.Errorf("%q is not in %s", text, got)
				}
			}
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		base := w.frontDoor()
		services := func(want string) {
			t.Helper()
			if got := w.get(base + "/api/health/services"); !strings.Contains(got,
				"workers hold the credentials for the model") || !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
		services("`worker check-model` on a worker's machine asks the provider")
		c, err := config.Load(w.getenv, config.RoleFrontdoor)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := assemble.New(c, slog.New(slog.DiscardHandler), quick)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = parts.Close() })
		held := agent.CredentialState{Until: time.Now().Add(time.Hour), Status: 429, HeldAt: time.Now()}
		if _, err := capacity.ShareCredentials(t.Context(), parts.Store,
			map[string]agent.CredentialState{"team": held}); err != nil {
			t.Fatal(err)
		}
		services("team is held until ")
	})
}
