package console

import (
	"net/http"
	"strconv"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// auditRows is how many entries a page of the audit log shows.
const auditRows = 100

// auditView is a page of the audit log.
type auditView struct {
	Entries []auth.Entry
	Older   string // the URL of the next page; empty on the last
}

func (c *Console) auditPage(w http.ResponseWriter, r *http.Request) error {
	skip := 0
	if text := r.URL.Query().Get("skip"); text != "" {
		var err error
		if skip, err = strconv.Atoi(text); err != nil || skip < 0 {
			return respond.BadQuery("skip must be a number.")
		}
	}
	list, err := c.audit.List(r.Context(), skip, auditRows)
	if err != nil {
		return err
	}
	for i := range list {
		e := &list[i]
		e.Who, e.What, e.Result = legible.Line(e.Who), legible.Line(e.What), legible.Line(e.Result)
	}
	v := auditView{Entries: list}
	if len(list) == auditRows {
		v.Older = "/audit?skip=" + strconv.Itoa(skip+auditRows)
	}
	return c.out.Page(w, r, http.StatusOK, "audit", v)
}
