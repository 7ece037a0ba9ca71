package chat

import (
	"context"
	"net/http"
	"testing"

	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// A user whom the front door has authenticated is the task's requester.
func TestActorIsWhoTheFrontDoorSays(t *testing.T) {
	t.Parallel()
	h := newHarness(t, Config{}, func(_ context.Context, s *http.Server) {
		next := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(people.WithVisitor(r.Context(),
				people.Visitor{Name: "ann@acme.test", Role: policy.User})))
		})
	})
	if got := h.Status(h.ask(`{"message": "Hi"}`).id).Task.Actor; got != "ann@acme.test" {
		t.Errorf("asked by %q", got)
	}
}
