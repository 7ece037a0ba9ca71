package foundry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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
