package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// requestKey is the key of the HTTP request in the context of a call. The SDK passes on the values of the context.
type requestKey struct{}

// call is one call of a tool. Its request has the visitor in its context, and the task's ID in its path.
type call struct {
	ctx context.Context
	*http.Request
}

// on returns the call as a request about a task, as the API's handlers get it.
func (c call) on(id string) *http.Request {
	r := c.Clone(c.ctx)
	r.Method, r.URL, r.Header = http.MethodGet, &url.URL{Path: auth.MCPPath}, http.Header{}
	r.SetPathValue("id", id)
	return r
}

// add adds a tool. What fails is a result for the model, which says what to change.
func add[In, Out any](s *Server, to *mcp.Server, do func(call, In) (Out, error), tool mcp.Tool) {
	mcp.AddTool(to, &tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		r, ok := ctx.Value(requestKey{}).(*http.Request)
		if !ok || people.VisitorOf(r.Context()).Method == "" {
			return nil, none, errors.New("the call is not authenticated")
		}
		v := people.VisitorOf(r.Context())
		v.Agent = true
		out, err := do(call{people.WithVisitor(ctx, v), r}, in)
		if err != nil {
			return nil, none, s.explain(ctx, tool.Name, err)
		}
		return nil, out, nil
	})
}

// explain returns an error for the model.
func (s *Server) explain(ctx context.Context, tool string, err error) error {
	p, known := respond.ProblemOf(err)
	if !known && ctx.Err() == nil {
		s.View.Log.Warn("call tool", "tool", tool, "err", err)
	}
	return errors.New(p.Detail)
}

// record writes a call that changes something to the audit log.
func (s *Server) record(c call, tool, id string, err error) {
	status := http.StatusOK
	if err != nil {
		p, _ := respond.ProblemOf(err)
		status = p.Status
	}
	s.Audit.Record(c.Request, "mcp "+tool, status, id)
}
