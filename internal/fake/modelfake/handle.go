package modelfake

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// errCut is the reason for dropping a connection when the turn demands it.
var errCut = errors.New("modelfake: cut")

// handle records every request, then answers it.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.active.Done()

	body, err := io.ReadAll(r.Body) // to its end, or net/http does not notice that the client disconnects
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req := Request{Method: r.Method, Path: r.URL.Path, Key: key(r.Header), Header: r.Header, Body: body}
	route := r.Method + " " + r.URL.Path
	toModel := route == "POST /v1/messages" || route == "POST /v1/messages/count_tokens"
	var c call
	if toModel {
		err = json.Unmarshal(body, &c)
		req.read(c)
	}
	s.record(req)

	w.Header().Set("Request-Id", "req_"+rand.Text())
	switch {
	case route == "HEAD /":
	case !toModel:
		writeError(w, Turn{Status: http.StatusNotFound, Message: "no route for " + route})
	case req.Key == "":
		writeError(w, Turn{Status: http.StatusUnauthorized, Message: "x-api-key header is required"})
	case r.Header.Get("Anthropic-Version") == "":
		writeError(w, Turn{Status: http.StatusBadRequest, Message: "anthropic-version: header is required"})
	case err != nil:
		writeError(w, Turn{Status: http.StatusBadRequest, Message: err.Error()})
	case len(c.Messages) == 0:
		writeError(w, Turn{Status: http.StatusBadRequest, Message: "messages: at least one message is required"})
	case strings.HasSuffix(route, "/count_tokens"):
		writeJSON(w, http.StatusOK, object{"input_tokens": len(body) / 4}) // the usual rule of thumb
	default:
		if s.model(r.Context(), w, c) != nil {
			// A handler that returned would end the body properly, and the client would take it for complete.
			panic(http.ErrAbortHandler)
		}
	}
}

// model answers as the script says. An error means that the connection must be dropped.
func (s *Server) model(ctx context.Context, w http.ResponseWriter, c call) error {
	conv := c.conversation()
	t, fail := s.next(conv)
	if t.Started != nil {
		select {
		case t.Started <- struct{}{}:
		default:
		}
	}
	if t.Gate != nil {
		select {
		case <-t.Gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	a := t.answer(c.Model, conv)
	switch {
	case fail:
		writeError(w, t)
	case c.Stream:
		return stream{w, t.Pace}.send(ctx, a, t)
	case t.Hang:
		<-ctx.Done()
		return ctx.Err()
	default:
		writeJSON(w, http.StatusOK, a.message())
	}
	return nil
}

// read takes the fields that tests ask about from the body. Unreadable fields stay empty.
func (r *Request) read(c call) {
	conv := c.conversation()
	r.Text, r.Prompts, r.Turn = conv.prompt, conv.prompts, conv.turn
	r.System, r.Model, r.Stream, r.Messages = strings.Join(c.System, "\n"), c.Model, c.Stream, len(c.Messages)
	for _, t := range c.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
}

func key(h http.Header) string {
	bearer, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return cmp.Or(h.Get("X-Api-Key"), bearer)
}

// errorTypes are the API's names for its statuses.
var errorTypes = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusGatewayTimeout:        "timeout_error",
	529:                              "overloaded_error",
}

func writeError(w http.ResponseWriter, t Turn) {
	for name, values := range t.Header {
		for _, v := range values {
			w.Header().Add(name, v)
		}
	}
	kind := cmp.Or(t.ErrorType, errorTypes[t.Status], "api_error")
	writeJSON(w, t.Status, object{
		"type":       "error",
		"error":      object{"type": kind, "message": cmp.Or(t.Message, kind)},
		"request_id": w.Header().Get("Request-Id"),
	})
}

// writeJSON ignores errors: they mean that the client is gone.
func writeJSON(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
