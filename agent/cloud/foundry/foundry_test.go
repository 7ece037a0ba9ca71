package foundry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// The chain of Azure's SDK reaches the identity that the machine gives the worker.
func TestManagedIdentity(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Identity-Header") != "identity-secret" || req.FormValue("resource")+"/.default" != scope {
			t.Errorf("asked %v, %v", req.Form, req.Header)
		}
		w.Header().Set("Content-Type", "application/json")
		const answer = `{"access_token": "managed", "expires_on": "%d", "resource": %q, "token_type": "Bearer"}`
		_, _ = fmt.Fprintf(w, answer, time.Now().Add(time.Hour).Unix(), req.FormValue("resource"))
	}))
	t.Cleanup(server.Close)
	for _, name := range []string{
		"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE",
	} {
		t.Setenv(name, "") // and back at the end
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("IDENTITY_ENDPOINT", server.URL)
	t.Setenv("IDENTITY_HEADER", "identity-secret")
	f, err := New(Config{Resource: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://foundry.example/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Sign(req, nil); err != nil || req.Header.Get("Authorization") != "Bearer managed" {
		t.Errorf("%v: %v", err, req.Header)
	}
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
	if f.Direct(u); u.String() != "https://acme.services.ai.azure.com/anthropic/v1/messages?beta=true" ||
		f.Host() != "acme.services.ai.azure.com" {
		t.Errorf("%s by %s", u, f.Host())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Sign(req, nil); err != nil || req.Header.Get("X-Api-Key") != "foundry-key" ||
		req.Header.Get("Authorization") != "" {
		t.Errorf("%v: %v", err, req.Header)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("there is no resource")
	}
}

// The errors of Azure's SDK have the status of the service's answer, and none if there was no answer.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, answer := range []int{http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable, 0} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodGet {
				at := "https://" + req.Host + "/tenant"
				_, _ = fmt.Fprintf(w, `{"issuer": %[1]q, "authorization_endpoint": %[1]q, "token_endpoint": %[1]q}`, at)
				return
			}
			if answer == 0 {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(answer)
		}))
		t.Cleanup(server.Close)
		var options azidentity.ClientSecretCredentialOptions
		options.Cloud.ActiveDirectoryAuthorityHost, options.DisableInstanceDiscovery = server.URL, true
		options.Transport, options.Retry.MaxRetries = server.Client(), -1
		credential, err := azidentity.NewClientSecretCredential("tenant", "worker", "secret", &options)
		if err != nil {
			t.Fatal(err)
		}
		_, err = credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{scope}})
		if err == nil || status(err) != answer {
			t.Errorf("status %d, want %d, of %v", status(err), answer, err)
		}
	}
}
