package api

import (
	"net/http"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Route adds the routes of the API.
func (a *API) Route(mux *http.ServeMux) {
	a.Out.Route(mux, map[string]respond.Route{
		"GET /api/tasks":              respond.For(tasks.Viewer, a.list),
		"GET /api/tasks/{id}":         respond.For(tasks.Guest, a.task(http.StatusOK, a.View.Task)),
		"GET /api/tasks/{id}/events":  respond.For(tasks.Guest, a.events),
		"GET /api/tasks/{id}/log":     respond.For(tasks.Guest, a.Logs.Send),
		"GET /api/tasks/{id}/diff":    respond.For(tasks.Guest, a.diff),
		"POST /api/tasks/{id}/cancel": respond.For(tasks.User, a.task(http.StatusAccepted, a.View.Cancel)),
		"POST /api/tasks/{id}/retry":  respond.For(tasks.Operator, a.task(http.StatusAccepted, a.View.Retry)),
		"POST /api/tasks/{id}/answer": respond.For(tasks.User, a.answer),
		"GET /api/costs":              respond.For(tasks.Viewer, a.costs),
		"GET /api/findings":           respond.For(tasks.Viewer, a.findings),
		"GET /api/agents":             respond.For(tasks.Viewer, a.agents),
		"GET /api/health":             respond.For(tasks.Viewer, a.health),
		"GET /api/health/services":    respond.For(tasks.Viewer, a.services),
		"GET /api/health/repository":  respond.For(tasks.Operator, a.outlook),
		"GET /api/config":             respond.For(tasks.Operator, a.config),
		"GET /api/audit":              respond.For(tasks.Admin, a.audit),
		"GET /api/audit/verify":       respond.For(tasks.Admin, a.verifyAudit),
		"GET /api/tokens":             respond.For(tasks.Admin, a.tokens),
		"POST /api/tokens":            respond.For(tasks.Admin, a.createToken),
		"DELETE /api/tokens/{name}":   respond.For(tasks.Admin, a.revokeToken),
		"GET /api/links":              respond.For(tasks.Admin, a.links),
		"DELETE /api/links/{name}":    respond.For(tasks.Admin, a.removeLink),
		"GET /api/openapi.yaml":       respond.For(tasks.Viewer, a.describe),

		"GET /api/fleet/environments":                 respond.For(tasks.Viewer, a.environments),
		"DELETE /api/fleet/environments/{key}":        respond.For(tasks.Operator, a.removeEnvironment),
		"POST /api/fleet/environments/{name}/rebuild": respond.For(tasks.Operator, a.rebuild),

		"GET /api/schedules":                respond.For(tasks.Viewer, a.schedules),
		"POST /api/schedules/{name}/resume": respond.For(tasks.Operator, a.resumeSchedule),

		"GET /api/inbox":              respond.For(tasks.Operator, a.failedEvents),
		"POST /api/inbox/{id}/replay": respond.For(tasks.Operator, a.replay),

		"POST /api/fleet/classes/{name}/pause":    respond.For(tasks.Operator, a.halt((*tasks.Fleet).Pause)),
		"POST /api/fleet/classes/{name}/resume":   respond.For(tasks.Operator, a.halt((*tasks.Fleet).Resume)),
		"POST /api/fleet/workers/{name}/cordon":   respond.For(tasks.Operator, a.halt((*tasks.Fleet).Cordon)),
		"POST /api/fleet/workers/{name}/uncordon": respond.For(tasks.Operator, a.halt((*tasks.Fleet).Uncordon)),
	})
}
