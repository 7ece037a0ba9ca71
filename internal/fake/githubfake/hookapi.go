package githubfake

import (
	"net/http"
	"slices"
)

// hookRoutes tell the App of its webhook, and how it was answered.
func (s *Server) hookRoutes() {
	s.api("GET /app/hook/config", "jwt", func(*request) reply {
		// That there is a secret shows, and nothing of it.
		return ok(object{"url": s.hook, "content_type": "json", "insecure_ssl": "0", "secret": "********"})
	})
	s.api("GET /app/hook/deliveries", "jwt", func(r *request) reply {
		// Pages go by a cursor, of which there is no need here: at most 100, the newest first.
		most := between(r.URL.Query().Get("per_page"), 30, 100)
		out := []object{}
		for i, d := range slices.Backward(s.deliveries) {
			if d.Answered && len(out) < most {
				out = append(out, s.deliverySummary(i+1, d))
			}
		}
		return ok(out)
	})
}

func (s *Server) deliverySummary(id int, d *Delivery) object {
	status := "OK"
	switch {
	case d.Err != nil:
		status = "failed to connect to host"
	case d.Status/100 != 2:
		status = "Invalid HTTP Response: " + http.StatusText(d.Status)
	}
	return object{
		"id": id, "guid": d.GUID, "delivered_at": stamp(d.At.UTC()), "redelivery": d.Redelivery, "duration": 0.1,
		"status": status, "status_code": d.Status, "event": d.Event, "action": nil,
		"installation_id": orNull(s.cfg.InstallationID), "repository_id": nil,
	}
}
