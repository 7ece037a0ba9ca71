package bedrock

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/errand-fleet/errand/agent/cloud"
)

func TestQuestion(t *testing.T) {
	t.Parallel()
	b, err := New(t.Context(), Config{Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	arn := "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc"
	for request, want := range map[string]*cloud.Question{
		"POST /model/eu.anthropic.claude-opus-5-5/invoke-with-response-stream": {
			Model: "eu.anthropic.claude-opus-5-5", Streamed: true,
		},
		"POST /model/claude-haiku-4-5-20251001-v1:0/invoke":         {Model: "claude-haiku-4-5-20251001-v1:0"},
		"POST /model/" + url.PathEscape(arn) + "/count-tokens":      {Model: arn, Free: true},
		"GET /inference-profiles":                                   {Free: true},
		"GET /inference-profiles/" + url.PathEscape(arn):            {Free: true},
		"POST /inference-profiles":                                  nil,
		"GET /model/claude-opus-5-5/invoke":                         nil,
		"POST /model/claude-opus-5-5/async-invoke":                  nil,
		"POST /model/x/../../guardrails/invoke":                     nil,
		"POST /model/%zz/invoke":                                    nil,
		"POST /model/claude-haiku-%2F..%2F..%2Fadmin%2Fx%3F/invoke": nil,
		"POST /model/a%2Fb%2Fc/invoke":                              nil,
		"POST /model/claude-haiku-..%2Fadmin/invoke":                nil,
		"GET /inference-profiles/../key/list":                       nil,
		"GET /inference-profiles/..%2Fkey%2Flist":                   nil,
		"GET /inference-profiles/a/b":                               nil,
	} {
		method, path, _ := strings.Cut(request, " ")
		switch q, ok := b.Question(method, path); {
		case ok != (want != nil), ok && q != *want:
			t.Errorf("%s: %+v %v", request, q, ok)
		}
	}
}

// The runtime and the lists of profiles are at different hosts, unless an endpoint is given. Names stay as they were
// escaped.
func TestDirect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config        Config
		runtime, list string
	}{
		"region": {
			Config{Region: "eu-west-1"},
			"https://bedrock-runtime.eu-west-1.amazonaws.com",
			"https://bedrock.eu-west-1.amazonaws.com",
		},
		"China": {
			Config{Region: "cn-north-1"},
			"https://bedrock-runtime.cn-north-1.amazonaws.com.cn",
			"https://bedrock.cn-north-1.amazonaws.com.cn",
		},
		"endpoint": {
			Config{Region: "eu-west-1", Endpoint: "https://llm.corp.example/aws/"},
			"https://llm.corp.example/aws",
			"https://llm.corp.example/aws",
		},
	} {
		b, err := New(t.Context(), c.config)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"/model/a%2Fb:0/invoke": c.runtime + "/model/a%2Fb:0/invoke", "/inference-profiles?type=X": c.list +
				"/inference-profiles?type=X",
		} {
			u, err := url.Parse("http://127.0.0.1:1" + path)
			if err != nil {
				t.Fatal(err)
			}
			if b.Direct(u); u.String() != want {
				t.Errorf("%s: %s, want %s", name, u, want)
			}
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	b, err := New(t.Context(), Config{Region: "eu-west-1", Key: "bedrock-api-key"})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"https://bedrock.example/model/x/invoke", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Sign(req, nil); err != nil || req.Header.Get("Authorization") != "Bearer bedrock-api-key" {
		t.Errorf("%v: %v", err, req.Header)
	}
}

// Credentials are renewed before they expire, and not for each request.
func TestRenewal(t *testing.T) {
	for life, want := range map[time.Duration]int{2 * time.Minute: 2, time.Hour: 1} {
		dir := t.TempDir()
		credential := `{"Version": 1, "AccessKeyId": "ASIA", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "` + time.Now().Add(life).UTC().Format(time.RFC3339) + `"}`
		for name, text := range map[string]string{
			"config": "[profile p]\ncredential_process = sh " + dir + "/print\n", "credentials": "",
			"print": "echo >> " + dir + "/runs; echo '" + credential + "'",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
		b, err := New(t.Context(), Config{Region: "eu-west-1", Profile: "p"})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := b.credentials.Retrieve(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if runs, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || len(runs) != want {
			t.Errorf("credentials of %v were fetched %d times, %v", life, len(runs), err)
		}
	}
}

// role is that of a web identity.
const role = "arn:aws:iam::1:role/errand"

// services is a server for the services of AWS that give credentials, to those who ask in the right way.
func services(t *testing.T) string {
	t.Helper()
	until := time.Now().Add(time.Hour).UTC()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sts", func(w http.ResponseWriter, req *http.Request) {
		if req.FormValue("Action") != "AssumeRoleWithWebIdentity" || req.FormValue("RoleArn") != role ||
			req.FormValue("WebIdentityToken") != "token-of-the-pod" {
			t.Errorf("STS was asked %v", req.Form)
		}
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAWEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
<SessionToken>session</SessionToken><Expiration>%s</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, until.Format(time.RFC3339))
	})
	mux.HandleFunc("GET /sso/federation/credentials", func(w http.ResponseWriter, req *http.Request) {
		q, token := req.URL.Query(), req.Header.Get("X-Amz-Sso_bearer_token")
		if token != "sso-token" || q.Get("account_id") != "1" || q.Get("role_name") != "errand" {
			t.Errorf("the portal of SSO was asked %v, %v", q, req.Header)
		}
		const answer = `{"roleCredentials": {"accessKeyId": "ASIASSO", "secretAccessKey": "s",
			"sessionToken": "session", "expiration": %d}}`
		_, _ = fmt.Fprintf(w, answer, until.UnixMilli())
	})
	mux.HandleFunc("PUT /latest/api/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "600")
		_, _ = fmt.Fprint(w, "machine-token")
	})
	const machine = "GET /latest/meta-data/iam/security-credentials/{role...}"
	mux.HandleFunc(machine, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Header.Get("X-Aws-Ec2-Metadata-Token") != "machine-token":
			t.Error("the machine was asked without its token")
		case req.PathValue("role") == "":
			_, _ = fmt.Fprint(w, "errand")
		default:
			_, _ = fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": "ASIAEC2", "SecretAccessKey": "s",
				"Token": "session", "Expiration": %q}`, until.Format(time.RFC3339))
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// Credentials come from where AWS' configuration says: the web identity of a pod (IRSA), a login by single sign-on, the
// role of the machine.
func TestChain(t *testing.T) {
	const session = `[profile p]
sso_session = acme
sso_account_id = 1
sso_role_name = errand
[sso-session acme]
sso_region = eu-west-1
sso_start_url = https://acme.awsapps.com/start
`
	cached := fmt.Sprintf("%x.json", sha1.Sum([]byte("acme"))) // AWS' name of the file
	login := `{"accessToken": "sso-token", "expiresAt": "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"}`
	for want, c := range map[string]struct{ variables, files map[string]string }{
		"ASIAWEB": {
			map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "token", "AWS_ROLE_ARN": role},
			map[string]string{"token": "token-of-the-pod"},
		},
		"ASIASSO": {
			map[string]string{"AWS_PROFILE": "p"},
			map[string]string{".aws/config": session, ".aws/sso/cache/" + cached: login},
		},
		"ASIAEC2": {},
	} {
		t.Run(want, func(t *testing.T) {
			base, dir := services(t), t.TempDir()
			t.Chdir(dir)
			for name, text := range c.files {
				made := os.MkdirAll(filepath.Dir(name), 0o700)
				if err := errors.Join(made, os.WriteFile(name, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			variables := map[string]string{
				"HOME": dir, "AWS_CONFIG_FILE": dir + "/.aws/config",
				"AWS_SHARED_CREDENTIALS_FILE": dir + "/.aws/credentials", "AWS_ENDPOINT_URL_STS": base + "/sts",
				"AWS_ENDPOINT_URL_SSO": base + "/sso", "AWS_EC2_METADATA_SERVICE_ENDPOINT": base,
			}
			for _, name := range []string{
				"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
				"AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED",
			} {
				variables[name] = ""
			}
			maps.Copy(variables, c.variables)
			for name, value := range variables {
				t.Setenv(name, value)
			}
			b, err := New(t.Context(), Config{Region: "eu-west-1"})
			if err != nil {
				t.Fatal(err)
			}
			const address = "https://bedrock.example/model/x/invoke"
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			err = b.Sign(req, nil)
			signed, token := req.Header.Get("Authorization"), req.Header.Get("X-Amz-Security-Token")
			if err != nil || !strings.Contains(signed, "Credential="+want+"/") || token != "session" {
				t.Errorf("%v: %v", err, req.Header)
			}
		})
	}
}

// Credentials that cannot be renewed are used until they expire.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &Bedrock{cfg: Config{Region: "eu-west-1"}, signer: v4.NewSigner()}
		sign := func() (string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				"https://bedrock.example/model/x/invoke", http.NoBody)
			if err != nil {
				return "", err
			}
			err = b.Sign(req, nil)
			return req.Header.Get("Authorization"), err
		}
		// As the SDK's cache reports them, with the time at which it renews them.
		b.credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID: "ASIAFIRST", SecretAccessKey: "s", CanExpire: true, Expires: time.Now().Add(time.Minute),
			}, nil
		})
		if _, err := sign(); err != nil {
			t.Fatal(err)
		}
		for _, fail := range []func(ctx context.Context) error{
			func(context.Context) error { return syscall.ECONNREFUSED },
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, // it hangs
		} {
			b.credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				return aws.Credentials{}, fail(ctx)
			})
			time.Sleep(2 * time.Minute) //nolint:forbidigo // in a bubble
			if got, err := sign(); err != nil || !strings.Contains(got, "ASIAFIRST") {
				t.Errorf("signed as %s, %v", got, err)
			}
		}
		b.credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, syscall.ECONNREFUSED
		})
		time.Sleep(3 * time.Minute) //nolint:forbidigo // in a bubble
		if got, err := sign(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("signed as %s after the end, %v", got, err)
		}
	})
}

// A worker without any credential lacks one, although the machine that the SDK asks last cannot be reached.
func TestNoCredential(t *testing.T) {
	t.Parallel()
	unreached := fmt.Errorf("no EC2 IMDS role found, operation error ec2imds: GetMetadata, %w", syscall.ECONNREFUSED)
	b := &Bedrock{credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, unreached
	})}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"https://bedrock.example/model/x/invoke", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Sign(req, nil); err == nil || errors.Is(err, syscall.ECONNREFUSED) ||
		!strings.Contains(err.Error(), unreached.Error()) {
		t.Error(err)
	}
}
