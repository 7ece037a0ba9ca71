package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"
)

// GraphQL sends a query to GitHub's GraphQL API, which go-github does not know, and decodes the data of the response into into. That API
// reports errors in a response of status 200; GraphQL returns them as REST would, so that StatusCode, Permanent and RetryAfter understand them.
func GraphQL(ctx context.Context, gh *github.Client, query string, vars map[string]any, into any) error {
	path := "graphql"
	if strings.HasSuffix(gh.BaseURL.Path, "/api/v3/") {
		path = "../graphql" // on an enterprise server
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
	if len(answer.Errors) > 0 { // there may be partial data, but all of it is needed
		return fmt.Errorf("query: %w", answer.Errors[0].asREST(resp))
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("read answer of query: %w", err)
	}
	return nil
}

// graphqlProblem is one of the errors of a response.
type graphqlProblem struct {
	Type       string `json:"type"`
	Message    string `json:"message"`
	Extensions struct {
		Code string `json:"code"` // set if the query is invalid, such as undefinedField
	} `json:"extensions"`
}

// asREST returns the error that REST would have returned. An error without a type is GitHub's own and may be temporary.
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
