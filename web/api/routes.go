package api

import (
	"net/http"

	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Route adds the routes of the API.
func (a *API) Route(mux *http.ServeMux) {
	routes := map[string]respond.Route{
		"GET /api/tasks":              respond.For(policy.Viewer, a.list),
		"GET /api/tasks/{id}":         respond.For(policy.Guest, a.task(http.StatusOK, a.View.Task)),
		"GET /api/tasks/{id}/events":  respond.For(policy.Guest, a.events),
		"GET /api/tasks/{id}/log":     respond.For(policy.Guest, a.Logs.Send),
		"GET /api/tasks/{id}/diff":    respond.For(policy.Guest, a.diff),
		"POST /api/tasks/{id}/cancel": respond.For(policy.User, a.task(http.StatusAccepted, a.View.Cancel)),
		"POST /api/tasks/{id}/retry":  respond.For(policy.Operator, a.task(http.StatusAccepted, a.View.Retry)),
		"POST /api/tasks/{id}/take":   respond.For(policy.User, a.take),
		"POST /api/tasks/{id}/answer": respond.For(policy.User, a.answer),
		"GET /api/costs":              respond.For(policy.Viewer, a.costs),
		"GET /api/findings":           respond.For(policy.Viewer, a.findings),
		"GET /api/agents":             respond.For(policy.Viewer, a.agents),
		"GET /api/health":             respond.For(policy.Viewer, a.health),
		"GET /api/health/services":    respond.For(policy.Viewer, a.services),
		"GET /api/health/repository":  respond.For(policy.Operator, a.outlook),
		"GET /api/config":             respond.For(policy.Operator, a.config),
		"GET /api/audit":              respond.For(policy.Admin, a.audit),
		"GET /api/audit/verify":       respond.For(policy.Admin, a.verifyAudit),
		"GET /api/tokens":             respond.For(policy.Admin, a.tokens),
		"POST /api/tokens":            respond.For(policy.Admin, a.createToken),
		"DELETE /api/tokens/{name}":   respond.For(policy.Admin, a.revokeToken),
		"GET /api/links":              respond.For(policy.Admin, a.links),
		"DELETE /api/links/{name}":    respond.For(policy.Admin, a.removeLink),
		"GET /api/openapi.yaml":       respond.For(policy.Viewer, a.describe),

		"POST /api/fleet/environments/{name}/rebuild": respond.For(policy.Operator, a.rebuild),

		"GET /api/schedules":                respond.For(policy.Viewer, a.schedules),
		"POST /api/schedules/{name}/resume": respond.For(policy.Operator, a.resumeSchedule),

		"GET /api/inbox":              respond.For(policy.Operator, a.failedEvents),
		"POST /api/inbox/{id}/replay": respond.For(policy.Operator, a.replay),

		"POST /api/fleet/classes/{name}/pause":    respond.For(policy.Operator, a.halt((*desk.Fleet).Pause)),
		"POST /api/fleet/classes/{name}/resume":   respond.For(policy.Operator, a.halt((*desk.Fleet).Resume)),
		"POST /api/fleet/workers/{name}/cordon":   respond.For(policy.Operator, a.halt((*desk.Fleet).Cordon)),
		"POST /api/fleet/workers/{name}/uncordon": respond.For(policy.Operator, a.halt((*desk.Fleet).Uncordon)),
	}
	checkQueries(routes)
	a.Out.Route(mux, routes)
}
