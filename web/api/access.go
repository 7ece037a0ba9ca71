package api

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// AuditPage is the response of GET /api/audit, newest first.
type AuditPage struct {
	Entries []desk.AuditEntry `json:"entries"`
	Next    int               `json:"next,omitempty"` // the skip parameter of the next page; 0 on the last
}

const (
	auditEntries    = 100
	maxAuditEntries = 1000
)

func (a *API) audit(w http.ResponseWriter, r *http.Request) error {
	q, err := auth.NewAuditQuery(r.URL.Query(), auditEntries, maxAuditEntries)
	if err != nil {
		return err
	}
	list, next, err := a.Audit.List(r.Context(), q)
	if list == nil {
		list = []desk.AuditEntry{}
	}
	return a.send(w, AuditPage{list, next}, err)
}

// Verified is the response of GET /api/audit/verify.
type Verified struct {
	Entries int    `json:"entries"`           // from the oldest to the newest, or to the first that was changed
	Problem string `json:"problem,omitempty"` // empty: no entry was changed
}

func (a *API) verifyAudit(w http.ResponseWriter, r *http.Request) error {
	n, problem, err := a.Audit.Verify(r.Context())
	return a.send(w, Verified{n, problem}, err)
}

// TokenRequest is the body of POST /api/tokens.
type TokenRequest struct {
	Name         string      `json:"name"`
	Role         policy.Role `json:"role"`
	Repositories []string    `json:"repositories"`
	Days         int         `json:"days"`
}

// NewToken is the response of POST /api/tokens: the only one with the token itself.
type NewToken struct {
	auth.Token
	Secret string `json:"token"`
}

// TokenList is the response of GET /api/tokens.
type TokenList struct {
	Tokens []auth.Token `json:"tokens"`
}

func (a *API) tokens(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Tokens.List(r.Context())
	return a.send(w, TokenList{list}, err)
}

// LinkList is the response of GET /api/links.
type LinkList struct {
	Links []people.Link `json:"links"`
}

func (a *API) links(w http.ResponseWriter, r *http.Request) error {
	list, err := rights.ListLinks(r.Context(), a.View.Store.Links)
	return a.send(w, LinkList{list}, err)
}

func (a *API) removeLink(w http.ResponseWriter, r *http.Request) error {
	found, err := a.View.Store.Links.Remove(r.Context(), r.PathValue("name"))
	return removed(w, found, err, "This account in Slack is not linked.")
}

// removed answers a request to remove something.
func removed(w http.ResponseWriter, found bool, err error, missing string) error {
	if err != nil {
		return err
	}
	if !found {
		return respond.Error(http.StatusNotFound, "Not found", missing)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxToken bounds the body of a request for a token, in bytes.
const maxToken = 64 << 10

func (a *API) createToken(w http.ResponseWriter, r *http.Request) error {
	var want TokenRequest
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxToken))
	body.DisallowUnknownFields() // a misspelled limit is none
	if err := body.Decode(&want); err != nil {
		return respond.Error(http.StatusBadRequest, "Invalid body",
			`A token looks like {"name": "ci", "role": "user", "days": 90}: `+err.Error()+".")
	}
	text, made, err := a.Tokens.Create(r.Context(),
		auth.Token{Name: want.Name, Role: want.Role, Repositories: want.Repositories}, want.Days)
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		return respond.Error(http.StatusUnprocessableEntity, "Invalid token", mistake.Sentence)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/tokens/"+made.Name)
	return a.Out.JSON(w, http.StatusCreated, NewToken{made, text})
}

func (a *API) revokeToken(w http.ResponseWriter, r *http.Request) error {
	found, err := a.Tokens.Revoke(r.Context(), r.PathValue("name"))
	return removed(w, found, err, "There is no token with this name.")
}
