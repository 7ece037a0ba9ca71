package foundry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/errand-fleet/errand/agent/cloud"
)

// credential gives what it has.
type credential struct {
	token azcore.AccessToken
	err   error
}

func (c *credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return c.token, c.err
}

// A token that cannot be renewed is used until it expires.
func TestFailedRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &credential{token: azcore.AccessToken{Token: "first", ExpiresOn: time.Now().Add(time.Minute)}}
		get := lasting(c)
		if _, _, err := get(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.token, c.err = azcore.AccessToken{}, errors.New("unreachable")
		time.Sleep(58 * time.Second) //nolint:forbidigo // in a bubble
		if token, life, err := get(t.Context()); err != nil || token.Token != "first" || life != 2*time.Second {
			t.Errorf("%v for %v, %v", token, life, err)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble
		if token, _, err := get(t.Context()); err == nil {
			t.Errorf("%v is used after its end", token)
		}
	})
}

func TestFoundry(t *testing.T) {
	t.Parallel()
	f, err := New(Config{Resource: "acme", Key: "foundry-key"})
	if err != nil {
		t.Fatal(err)
	}
	for path, free := range map[string]bool{"/v1/messages": false, "/v1/messages/count_tokens": true} {
		if q, ok := f.Question(http.MethodPost, path); !ok || q.Free != free || q.Model != "" {
			t.Errorf("%s: %+v %v", path, q, ok)
		}
	}
	for _, path := range []string{"/v1/messages/batches", "/v1/files", "/openai/v1/responses", "/v1/../v1/messages"} {
		if _, ok := f.Question(http.MethodPost, path); ok {
			t.Errorf("%s passes", path)
		}
	}
	u := &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/v1/messages", RawQuery: "beta=true"}
	if f.Direct(u); u.String() != "https://acme.services.ai.azure.com/anthropic/v1/messages?beta=true" || f.Host() != "acme.services.ai.azure.com" {
		t.Errorf("%s by %s", u, f.Host())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Sign(req, nil); err != nil || req.Header.Get("X-Api-Key") != "foundry-key" || req.Header.Get("Authorization") != "" {
		t.Errorf("%v: %v", err, req.Header)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("there is no resource")
	}
}

// A failure of the service that gives tokens is not one of the credential.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const has, refuses, fails, gone = http.StatusOK, http.StatusBadRequest, http.StatusServiceUnavailable, 0
	for name, c := range map[string]struct {
		answers     []int
		unreachable bool
	}{
		"closed after a token": {[]int{has, gone}, true}, "fails after a token": {[]int{has, fails}, true},
		"refuses after a token": {[]int{has, refuses}, false}, "fails at first": {[]int{fails}, true},
		"refuses at first": {[]int{refuses}, false}, "limits at first": {[]int{http.StatusTooManyRequests}, true},
	} {
		var status atomic.Int32
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			at := "https://" + req.Host + "/tenant"
			if req.Method == http.MethodGet {
				_, _ = fmt.Fprintf(w, `{"issuer": %[1]q, "authorization_endpoint": %[1]q, "token_endpoint": %[1]q}`, at)
				return
			}
			w.WriteHeader(int(status.Load()))
			_, _ = fmt.Fprint(w, `{"access_token": "t", "expires_on": 1}`) // it expired in 1970
		}))
		t.Cleanup(server.Close)
		var options azidentity.ClientSecretCredentialOptions
		options.Cloud.ActiveDirectoryAuthorityHost, options.DisableInstanceDiscovery = server.URL, true
		options.Transport, options.Retry.MaxRetries = server.Client(), -1
		credential, err := azidentity.NewClientSecretCredential("tenant", "worker", "secret", &options)
		if err != nil {
			t.Fatal(err)
		}
		get := lasting(credential)
		for i, answer := range c.answers {
			if status.Store(int32(answer)); answer == gone {
				server.Close()
			}
			_, _, err := get(t.Context())
			last := i == len(c.answers)-1
			if (err != nil) != last || errors.Is(err, cloud.ErrUnreachable) != (last && c.unreachable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
