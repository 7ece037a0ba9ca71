package web

import (
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// agents tells what can be asked for by name in a repository (?repo=), a local directory (?projectPath=), or in neither.
func (h *Handler) agents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	o, err := h.cfg.Desk.Offer(r.Context(), tasks.Where{Repo: q.Get("repo"), Dir: q.Get("projectPath")})
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid place", mistake.Sentence})
		return
	}
	if err != nil {
		h.fail(w, r, problem{http.StatusServiceUnavailable, "Unavailable", h.untold(r, err)})
		return
	}
	h.json(w, http.StatusOK, o)
}

// untold is why nobody has told what is offered, and what to do about it.
func (h *Handler) untold(r *http.Request, err error) string {
	if cli, ok := errors.AsType[*tasks.CLIError](err); ok {
		return sentences(cli.Message, cli.Remedy)
	}
	seen, away := h.glance(r.Context())
	if away != nil {
		h.log.Warn("ask what is offered", "err", err)
		return "Redis does not answer. Try again in a moment."
	}
	if what, remedy := tasks.Unable(seen.workers); what != "" {
		return sentences(what, remedy)
	}
	h.log.Warn("ask what is offered", "err", err)
	return "No worker has answered in time. One may still be cloning the repository: try again in a moment."
}

// project is what a front door tells of a local directory.
type project struct {
	Valid     bool     `json:"valid"`             // tasks may work there
	HasClaude bool     `json:"hasClaude"`         // it has instructions for the agent: CLAUDE.md or .claude
	Agents    []string `json:"agents"`            // that a message there can name
	Commands  []string `json:"commands"`          // likewise
	Problem   string   `json:"problem,omitempty"` // why it is not valid, or why that is not known
}

func (h *Handler) project(r *http.Request, path string) *project {
	p := project{Agents: []string{}, Commands: []string{}}
	o, err := h.cfg.Desk.Offer(r.Context(), tasks.Where{Dir: path})
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		p.Problem = mistake.Sentence
		return &p
	}
	if err != nil {
		p.Problem = h.untold(r, err)
		return &p
	}
	p.Valid, p.HasClaude = true, o.Configured
	for _, a := range o.Agents {
		p.Agents = append(p.Agents, a.Name)
	}
	for _, c := range o.Commands {
		p.Commands = append(p.Commands, c.Name)
	}
	return &p
}
