package chat

import (
	"encoding/json"
	"net/http"
)

// problem is an error response before the stream begins, in the form of RFC 9457.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the reader may be gone
}
