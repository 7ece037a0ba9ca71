package mcpserver

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

// route returns a handler with the routes of a server.
func route(t *testing.T, s *Server) http.Handler {
	t.Helper()
	out, err := respond.New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Route(out, mux)
	return mux
}

// post sends a body as a visitor with a token, in the version of the protocol that has batches.
func post(t *testing.T, to http.Handler, body string) *httptest.ResponseRecorder {
	t.Helper()
	ctx := people.WithVisitor(t.Context(), people.Visitor{Name: "laptop", Method: "token", Role: policy.User})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, auth.MCPPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return w
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func TestOneMessagePerRequest(t *testing.T) {
	t.Parallel()
	h := route(t, new(Server))
	for body, want := range map[string]int{
		listTools:             http.StatusOK,
		" \r\n\t" + listTools: http.StatusOK,
		"[" + listTools + "]": http.StatusBadRequest,
		" \r\n\t[" + listTools + "," + listTools + "]": http.StatusBadRequest,
		`"` + strings.Repeat("x", maxBody) + `"`:       http.StatusRequestEntityTooLarge,
	} {
		w := post(t, h, body)
		problem := w.Header().Get("Content-Type") == "application/problem+json"
		if w.Code != want || problem == (want == http.StatusOK) {
			t.Errorf("%.60q: %d %v %s, want %d", body, w.Code, w.Header(), w.Body, want)
		}
	}
}

// reviews is a source of one review.
type reviews struct{ tasks.Reviewer }

func (reviews) Reported(tasks.Task, tasks.Ending) *tasks.ReviewResult { return &tasks.ReviewResult{} }

func (reviews) Result(context.Context, tasks.Task, tasks.Ending) (*tasks.ReviewResult, error) {
	return &tasks.ReviewResult{Text: "One problem.\x1b[2J"}, nil
}

// The answer of a review is its text, not the JSON of the agent.
func TestAnswerOfAReview(t *testing.T) {
	t.Parallel()
	s := &Server{View: &view.Reader{Reviews: map[string]tasks.Reviewer{"github": reviews{}}, Now: time.Now}}
	e := tasks.Ending{Kind: tasks.Answered}
	e.Result.Text = "As JSON."
	for source, want := range map[string]string{"github": "One problem.", "slack": e.Result.Text} {
		got, err := s.show(call{ctx: t.Context()}, tasks.Status{Task: tasks.Task{Source: source}, Ending: &e})
		if err != nil || got.Answer != want {
			t.Errorf("%s: %q, %v", source, got.Answer, err)
		}
	}
}

// slowPoster does not answer before it is told to.
type slowPoster struct {
	called, proceed chan struct{}
}

func (p slowPoster) Post(context.Context, *desk.Desk, url.Values, []tasks.Picture) (desk.Receipt, string, error) {
	p.called <- struct{}{}
	<-p.proceed
	return desk.Receipt{}, "chat/x", nil
}

func TestBusyServerRefusesCalls(t *testing.T) {
	t.Parallel()
	rdb := redistest.Client(t, redistest.Start(t))
	st, err := store.New(store.Config{Redis: rdb})
	if err != nil {
		t.Fatal(err)
	}
	poster, log := slowPoster{make(chan struct{}), make(chan struct{})}, slog.New(slog.DiscardHandler)
	h := route(t, &Server{
		View: &view.Reader{Log: log}, Audit: &auth.Audit{Store: st.Audit, Log: log}, Poster: poster, Life: t.Context(),
	})
	var all sync.WaitGroup
	for range maxCalls {
		all.Go(func() {
			w := post(t, h,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"submit","arguments":{"message":"x"}}}`)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "chat/x") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	for range maxCalls {
		<-poster.called
	}
	if w := post(t, h, listTools); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one call too many: %d %v %s", w.Code, w.Header(), w.Body)
	}
	close(poster.proceed)
	all.Wait()
	if w := post(t, h, listTools); w.Code != http.StatusOK {
		t.Errorf("afterwards: %d %s", w.Code, w.Body)
	}
}
