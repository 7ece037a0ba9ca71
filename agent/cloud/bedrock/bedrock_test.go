package bedrock

import (
	"context"
	"errors"
	"fmt"
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

// Credentials come from where AWS' configuration says, such as the web identity of a pod (IRSA).
func TestWebIdentity(t *testing.T) {
	const role = "arn:aws:iam::1:role/errand"
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.FormValue("Action") != "AssumeRoleWithWebIdentity" || req.FormValue("RoleArn") != role ||
			req.FormValue("WebIdentityToken") != "token-of-the-pod" {
			t.Errorf("STS was asked %v", req.Form)
		}
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAWEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
<SessionToken>session</SessionToken><Expiration>%s</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(sts.Close)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("token-of-the-pod"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"HOME": dir, "AWS_CONFIG_FILE": dir + "/config", "AWS_SHARED_CREDENTIALS_FILE": dir + "/credentials",
		"AWS_ENDPOINT_URL_STS": sts.URL, "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": role,
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
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
	signed, session := req.Header.Get("Authorization"), req.Header.Get("X-Amz-Security-Token")
	if err != nil || !strings.Contains(signed, "Credential=ASIAWEB/") || session != "session" {
		t.Errorf("%v: %v", err, req.Header)
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
