package githubfake_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// askGraphQL posts a query and returns the answer, which is JSON of status 200 whatever is in it.
func askGraphQL(t *testing.T, c *github.Client, query string, vars map[string]any) string {
	t.Helper()
	req, err := c.NewRequest("POST", "../graphql", map[string]any{"query": query, "variables": vars})
	if err != nil {
		t.Fatal(err)
	}
	var raw json.RawMessage
	if _, err := c.Do(t.Context(), req, &raw); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

func TestGraphQLRefusesInItsWay(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	c := newClient(t, s, "ghp_test")
	for query, want := range map[string]string{
		`{ repository(owner: "acme", name: "nope") { nameWithOwner } }`: `{"data":{"repository":null},"errors":[{"type":"NOT_FOUND","path":["repository"],` +
			`"locations":[{"line":1,"column":3}],"message":"Could not resolve to a Repository with the name 'acme/nope'."}]}`,
		`{ repository(owner: "acme", name: "api") { stars } }`: `{"errors":[{"message":"Cannot query field \"stars\" on type \"Repository\"."}]}`,
		`{`: `{"errors":[{"message":"Expected Name, found \u003cEOF\u003e"}]}`,
		``:  `{"errors":[{"message":"A query attribute must be specified and must be a string."}]}`,
		`mutation { resolveReviewThread(input: {threadId: "x"}) { thread { id } } }`: `{"data":{"resolveReviewThread":null},"errors":[{"type":"NOT_FOUND",` +
			`"path":["resolveReviewThread"],"locations":[{"line":1,"column":12}],"message":"Could not resolve to a node with the global id of 'x'"}]}`,
		`{ repository(owner: "acme", name: "api") { pullRequest(number: 1) { reviewThreads { totalCount } } } }`: `{"data":{"repository":{"pullRequest":` +
			`{"reviewThreads":null}}},"errors":[{"type":"MISSING_PAGINATION_BOUNDARIES","path":["repository","pullRequest","reviewThreads"],` +
			`"locations":[{"line":1,"column":69}],"message":"You must provide a ` + "`first` or `last`" +
			` value to properly paginate the connection."}]}`,
	} {
		if got := askGraphQL(t, c, query, nil); got != want {
			t.Errorf("%s\n got %s\nwant %s", query, got, want)
		}
	}
	req, err := newClient(t, s, "").NewRequest("POST", "../graphql", map[string]any{"query": "{ viewer { login } }"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = newClient(t, s, "").Do(t.Context(), req, nil)
	wantError(t, err, 401, "Requires authentication")
}
