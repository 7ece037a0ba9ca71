package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/modelfake"
)

// Tasks go on with the second credential when the first one has reached its usage limit, and nobody finds either.
func TestSeveralCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("", modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": collecting}}}}, modelfake.Turn{Text: "Answered."})
	behind, err := url.Parse(w.model.URL())
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(behind)
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Api-Key") != "first-key-of-a-team-4711" {
			proxy.ServeHTTP(rw, req)
			return
		}
		refused.Add(1)
		rw.Header().Set("Anthropic-Ratelimit-Unified-Status", "rejected")
		rw.Header().Set("Anthropic-Ratelimit-Unified-Reset", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
		rw.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(model.Close)
	delete(w.env, "ANTHROPIC_API_KEY")
	w.env["ANTHROPIC_BASE_URL"], w.env["FIRST_KEY"], w.env["SECOND_KEY"] = model.URL, "first-key-of-a-team-4711", "second-key-of-a-team-4712"
	yaml := "repositories: {" + repo + ": {trusted: true}}\nchannels: {" + channel + ": {repository: " + repo + `}}
credentials:
  - {name: first, api_key: '{{env "FIRST_KEY"}}'}
  - {name: second, api_key: '{{env "SECOND_KEY"}}', repositories: [acme/*]}
`
	if err := os.WriteFile(w.env["ERRAND_CONFIG"], []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	base := w.frontDoor()
	log := &safeBuffer{}
	w.processTo(log)
	if got := w.answers(w.mention("one", ""), 1)[0]; !strings.Contains(got, "Answered.") {
		t.Fatalf("%s", got)
	}
	for _, thread := range []string{w.mention("two", ""), w.mention("three", "")} {
		if got := w.answers(thread, 1)[0]; !strings.Contains(got, "Answered.") {
			t.Errorf("%s", got)
		}
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("the first credential was asked %d times", n)
	}
	if tasks := w.get(base + "/api/tasks"); strings.Count(tasks, `"credential": "second"`) != 3 {
		t.Errorf("tasks: %s", tasks)
	}
	if said := string(log.Bytes()); !strings.Contains(said, `"credential":"first"`) || !strings.Contains(said, `"until"`) {
		t.Errorf("log: %s", said)
	}
	w.search("the worker's log", log.Bytes())
	w.secretsStayInside()
}
