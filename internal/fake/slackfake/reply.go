package slackfake

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
)

// reply is what goes back to the client.
type reply struct {
	status     int      // 0 means 200
	code       string   // Slack's error code; empty means ok
	details    []string // of the code
	retryAfter string   // a header, if not empty
	body       answer   // besides "ok" and "error"
	cut        bool     // nothing goes back: the connection is cut
}

func (r reply) write(w http.ResponseWriter) {
	if r.cut {
		panic(http.ErrAbortHandler) // the documented way to cut a connection; nothing is logged
	}
	body := answer{"ok": r.code == ""}
	maps.Copy(body, r.body)
	if r.code != "" {
		body["error"] = r.code
	}
	if len(r.details) > 0 { // the same list twice, as Slack sends it (slack-go#1452)
		body["errors"] = r.details
		var messages []string
		for _, d := range r.details {
			messages = append(messages, "[ERROR] "+d)
		}
		body["response_metadata"] = answer{"messages": messages}
	}
	if r.retryAfter != "" {
		w.Header().Set("Retry-After", r.retryAfter)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(max(r.status, http.StatusOK))
	_ = json.NewEncoder(w).Encode(body) // a client that has left is its own affair
}

// readForm takes the arguments from query, form or JSON body: Slack accepts all three. Values of JSON that are not
// strings stay JSON.
func readForm(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	form := r.Form
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return form, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.NewDecoder(r.Body).Decode(&fields); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	for name, value := range fields {
		if string(value) == "null" {
			continue // as good as absent
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		form.Set(name, text)
	}
	return form, nil
}
