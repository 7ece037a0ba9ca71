package egress

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// An address with a user is refused: programs differ in what they take for its host.
func TestAddressWithUser(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://ann@example.com/", "http://ann:pw@example.com/", "https://example.com/"} {
		w := httptest.NewRecorder()
		(&Proxy{}).forward(w, httptest.NewRequest(http.MethodGet, address, nil), &Rules{})
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", address, w.Code)
		}
	}
}
