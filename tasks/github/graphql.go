package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"
)

// graphql asks GitHub's other API, which go-github does not know, and puts the data of the answer into what into points to. What that API
// refuses stands in an answer of status 200; here it is an error as REST's is, so that status, lasting and retryAfter understand it.
func graphql(ctx context.Context, gh *github.Client, query string, vars map[string]any, into any) error {
	path := "graphql"
	if strings.HasSuffix(gh.BaseURL.Path, "/api/v3/") {
		path = "../graphql" // an enterprise server has it beside REST
	}
	req, err := gh.NewRequest(http.MethodPost, path, map[string]any{"query": query, "variables": vars})
	if err != nil {
		return fmt.Errorf("make query: %w", err)
	}
	var answer struct {
		Data   json.RawMessage  `json:"data"`
		Errors []graphqlProblem `json:"errors"`
	}
	resp, err := gh.Do(ctx, req, &answer)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if len(answer.Errors) > 0 { // a part of the data may be there; we ask for nothing that we could do without
		return fmt.Errorf("query: %w", answer.Errors[0].asREST(resp))
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("read answer of query: %w", err)
	}
	return nil
}

// graphqlProblem is one of the errors of an answer.
type graphqlProblem struct {
	Type       string `json:"type"`
	Message    string `json:"message"`
	Extensions struct {
		Code string `json:"code"` // of a query that is wrong in itself, such as undefinedField
	} `json:"extensions"`
}

// asREST is the error that REST would have answered with. What has no type is GitHub's own trouble and may pass.
func (p graphqlProblem) asREST(resp *github.Response) error {
	code := 0
	switch p.Type {
	case "RATE_LIMITED", "RATE_LIMIT":
		return &github.RateLimitError{Rate: resp.Rate, Response: resp.Response, Message: p.Message}
	case "NOT_FOUND":
		code = http.StatusNotFound
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		code = http.StatusForbidden
	default:
		if p.Extensions.Code == "" && p.Type != "UNPROCESSABLE" {
			return fmt.Errorf("GitHub says %s: %q", p.Type, p.Message)
		}
		code = http.StatusUnprocessableEntity
	}
	refused := *resp.Response
	refused.StatusCode = code
	return &github.ErrorResponse{Response: &refused, Message: p.Message}
}
