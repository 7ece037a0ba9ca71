package web

import (
	"net/http"
	"strings"
	"testing"
)

// A page has the server format a text that it received in pieces.
func TestFormat(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contains(h.do("POST", "/format", "**b** <script>"), http.StatusOK, "<strong>b</strong> &lt;script&gt;")
	h.contains(h.do("POST", "/format", strings.Repeat("a", 32<<10+1)), http.StatusRequestEntityTooLarge)
	h.contains(h.do("POST", "/format", "x", "Origin", "https://evil.test"), http.StatusForbidden)
	h.contains(h.do("POST", "/format", "x", "Authorization", ""), http.StatusUnauthorized)
}
