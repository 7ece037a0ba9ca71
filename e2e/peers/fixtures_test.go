package peers

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/forge"
	forgegithub "github.com/errand-fleet/errand/forge/github"
)

// recordedCall is an exchange with the real GitHub, as @octokit/fixtures has it.
type recordedCall struct {
	Method, Path string
	Status       int
	Response     json.RawMessage
	Header       map[string]string `json:"responseHeaders"`
}

// Answers that the real GitHub has given are understood by errand's client. Few of the recorded operations are ones
// that errand calls: statuses, and the redirect of a repository that was renamed.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	var calls []recordedCall
	for _, scenario := range []string{"create-status", "rename-repository"} {
		var some []recordedCall
		readJSON(t, &some, "@octokit", "fixtures", "scenarios", "api.github.com", scenario, "normalized-fixture.json")
		calls = append(calls, some...)
	}
	const sha = "0000000000000000000000000000000000000001"
	calls = append(calls,
		// Not recorded: the repository of the statuses has no check runs, and the renamed one has a pull request.
		recordedCall{
			Method: "get", Path: "/repos/octokit-fixture-org/create-status/commits/" + sha + "/check-runs", Status: 200,
			Response: json.RawMessage(`{"total_count":0,"check_runs":[]}`),
		},
		recordedCall{
			Method: "get", Path: "/repos/octokit-fixture-org/rename-repository/pulls/1", Status: 301,
			Header: map[string]string{"location": "https://api.github.com/repositories/1000/pulls/1"},
		},
		recordedCall{
			Method: "get", Path: "/repositories/1000/pulls/1", Status: 200,
			Response: json.RawMessage(`{"number":1,"title":"moved"}`),
		},
	)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		for _, c := range calls {
			if !strings.EqualFold(c.Method, req.Method) || c.Path != req.URL.Path {
				continue
			}
			for name, value := range c.Header {
				if !strings.EqualFold(name, "content-length") && !strings.EqualFold(name, "content-encoding") {
					w.Header().Set(name, strings.Replace(value, "https://api.github.com", server.URL, 1))
				}
			}
			w.WriteHeader(c.Status)
			_, _ = w.Write(c.Response)
			return
		}
		http.Error(w, req.Method+" "+req.URL.Path+" was not recorded", http.StatusTeapot)
		_, _ = io.Copy(io.Discard, req.Body)
	}))
	t.Cleanup(server.Close)
	f, err := forgegithub.New(forgegithub.Config{
		APIURL: server.URL + "/", URL: "https://github.com", Token: "ghp_test",
	})
	if err != nil {
		t.Fatal(err)
	}
	status, err := f.CIStatus(limited(t), "octokit-fixture-org/create-status", sha)
	want := forge.CIStatus{Failed: []forge.FailedCheck{{
		Name: "example/1", URL: "https://example.com", Output: "create-status failure test",
	}}}
	if diff := cmp.Diff(want, status); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	pr, err := f.PullRequest(limited(t), "octokit-fixture-org/rename-repository", 1)
	if err != nil || pr.Title != "moved" {
		t.Errorf("a renamed repository: %+v, %v", pr, err)
	}
}
