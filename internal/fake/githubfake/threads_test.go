package githubfake_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

const threadsQuery = `query($n: Int!, $after: String) { repository(owner: "acme", name: "api") { pullRequest(number: $n) {
	author { login } headRefOid reviewThreads(first: 1, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes {
		id isResolved isOutdated path line viewerCanResolve
		comments(first: 10) { nodes { databaseId body authorAssociation author { __typename login ... on Bot { id } } } } } } } } }`

// inlineReview posts a review with two comments.
func inlineReview(t *testing.T, c *github.Client, n int) {
	t.Helper()
	_, _, err := c.PullRequests.CreateReview(t.Context(), "acme", "api", n, &github.PullRequestReviewRequest{
		Event: new("COMMENT"), Comments: []*github.DraftReviewComment{
			{Path: new("README.md"), Line: new(2), Body: new("first")},
			{Path: new("README.md"), Line: new(3), Body: new("second")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{Events: []string{"pull_request_review_thread", "pull_request_review_comment"}})
	rc := receive(t, s)
	n, c := open(t, s), newClient(t, s, "ghp_test")
	inlineReview(t, c, n)
	root := s.Threads(repo, n)[0]
	if _, err := s.ReplyThread(t.Context(), repo, n, root.Comment, "alice", "No."); err != nil {
		t.Fatal(err)
	}

	page := askGraphQL(t, c, threadsQuery, map[string]any{"n": n})
	for _, want := range []string{
		`"totalCount":2`, `"hasNextPage":true`, `"id":"` + root.ID + `"`, `"isResolved":false`,
		`"path":"README.md"`, `"line":2`,
		`"author":{"__typename":"User","login":"alice"}`, `"body":"No."`, `"viewerCanResolve":true`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in %s", want, page)
		}
	}
	if strings.Contains(page, "second") {
		t.Errorf("more than one page: %s", page)
	}
	if got := askGraphQL(t, c, threadsQuery, map[string]any{"n": n, "after": "1"}); !strings.Contains(got, "second") ||
		!strings.Contains(got, `"hasNextPage":false`) {
		t.Errorf("second page: %s", got)
	}

	resolve := func() string {
		return askGraphQL(t, c,
			`mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`,
			map[string]any{"id": root.ID})
	}
	for range 2 {
		if got, want := resolve(), `{"data":{"resolveReviewThread":{"thread":{"isResolved":true}}}}`; got != want {
			t.Errorf("resolved: %s", got)
		}
	}
	if by := s.Threads(repo, n)[0].ResolvedBy; by != "errand" {
		t.Errorf("resolved by %q", by)
	}
	if err := s.ResolveThread(t.Context(), repo, n, root.Comment, "alice", false); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context(), (*githubfake.Server).Settled); err != nil {
		t.Fatal(err)
	}
	said := "pull_request_review_comment created" // one began the thread, two are replies
	want := []string{said, said, said, "pull_request_review_thread resolved", "pull_request_review_thread unresolved"}
	got := rc.seen()
	slices.Sort(got) // there is no order between what clients do and what people do
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
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

// A thread shows who resolved it, and a comment the reactions of one content with their users.
func TestThreadsSayWho(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	n := open(t, s)
	c := newClient(t, s, "ghp_test")
	inlineReview(t, c, n)
	root := s.Threads(repo, n)[0].Comment
	for user, content := range map[string]string{"alice": "-1", "bob": "+1", "carol": "eyes"} {
		if err := s.ReactToThread(repo, n, root, user, content); err != nil {
			t.Fatal(err)
		}
	}
	const query = `{ repository(owner: "acme", name: "api") { pullRequest(number: 1) { reviewThreads(first: 1) { nodes { resolvedBy { login }
		comments(first: 1) { nodes { reactions(first: 9, content: THUMBS_DOWN) { totalCount nodes { content user { login } } } } } } } } } }`
	const format = `{"data":{"repository":{"pullRequest":{"reviewThreads":{"nodes":[{"comments":{"nodes":[{"reactions":{"nodes":[` +
		`{"content":"THUMBS_DOWN","user":{"login":"alice"}}],"totalCount":1}}]},"resolvedBy":%s}]}}}}}`
	if got, want := askGraphQL(t, c, query, nil), fmt.Sprintf(format, "null"); got != want {
		t.Errorf("open:\n got %s\nwant %s", got, want)
	}
	if err := s.ResolveThread(t.Context(), repo, n, root, "bob", true); err != nil {
		t.Fatal(err)
	}
	if got, want := askGraphQL(t, c, query, nil), fmt.Sprintf(format, `{"login":"bob"}`); got != want {
		t.Errorf("resolved:\n got %s\nwant %s", got, want)
	}
	if err := s.ReactToThread(repo, n, root, "bob", "shrug"); err == nil {
		t.Error("an unknown reaction is accepted")
	}
}
