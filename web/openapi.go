package web

import (
	_ "embed"
	"net/http"
)

// description is the API in OpenAPI. A test holds it to the routes and to what they answer.
//
//go:embed openapi.yaml
var description []byte

func (h *Handler) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description) // the reader may be gone
}
