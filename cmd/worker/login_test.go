package main

import (
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// A standalone system without a configured token prints how to log in: a link that opens the console once, and the
// generated token.
func TestStandaloneInvites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	delete(w.env, "ERRAND_CONSOLE_TOKEN")
	said := map[string]string{}
	for lines := w.start(); said["logs"] == "" && lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		said[name] = strings.TrimSpace(value)
	}
	base, _, _ := strings.Cut(said["console"], "/login?once=")
	ask := func(client *http.Client, url, token string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return resp, err
	}
	for i, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser := &http.Client{Jar: jar}
		resp, err := ask(browser, said["console"], "")
		if err != nil || resp.StatusCode != want {
			t.Fatalf("visit %d of %s: %v, %v", i+1, said["console"], resp, err)
		}
		if resp, err = ask(browser, base+"/queues/", ""); err != nil || resp.StatusCode != want {
			t.Errorf("and then: %v, %v", resp, err)
		}
	}
	if resp, err := ask(http.DefaultClient, base+"/api/tasks", said["token"]); err != nil ||
		resp.StatusCode != http.StatusOK {
		t.Errorf("token %q: %v, %v", said["token"], resp, err)
	}
}
