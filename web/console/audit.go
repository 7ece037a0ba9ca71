package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/web/auth"
)

// auditRows is how many entries a page of the audit log shows.
const auditRows = 100

// auditView is a page of the audit log.
type auditView struct {
	Who, What, Since string // the filters
	Entries          []auditRow
	Older            string // the URL of the next page; empty on the last
	Verified         bool   // the chain was checked
	Intact           int    // entries that match
	Problem          string // of the first that does not; empty: none
}

// auditRow is an entry and what came of it in a word.
type auditRow struct {
	auth.Entry
	Outcome, Level string
}

// To returns the page that came of the entry, or "".
func (r auditRow) To() string {
	if strings.HasPrefix(r.Result, "/tasks/") || strings.HasPrefix(r.Result, "/chat/") {
		return r.Result
	}
	return ""
}

func newAuditRow(e auth.Entry) auditRow {
	e.Who, e.What, e.Result = legible.Line(e.Who), legible.Line(e.What), legible.Line(e.Result)
	row := auditRow{Entry: e, Outcome: "done", Level: "ok"}
	switch {
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		row.Outcome, row.Level = "refused", "warning"
	case e.Status >= http.StatusBadRequest:
		row.Outcome, row.Level = "failed", "error"
	case e.Status == 0:
		row.Outcome, row.Level = "unreadable", "error"
	}
	return row
}

// auditPage shows the audit log. It checks the chain only on request (?verify=1), because that reads all entries.
func (c *Console) auditPage(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	q, err := auth.NewAuditQuery(query, auditRows, auditRows)
	if err != nil {
		return err
	}
	v := auditView{Who: q.Who, What: q.What, Since: query.Get("since"), Verified: query.Has("verify")}
	if v.Verified {
		if v.Intact, v.Problem, err = c.audit.Verify(r.Context()); err != nil {
			return err
		}
	}
	list, next, err := c.audit.List(r.Context(), q)
	if err != nil {
		return err
	}
	for _, e := range list {
		v.Entries = append(v.Entries, newAuditRow(e))
	}
	if next > 0 {
		older := url.Values{"skip": {strconv.Itoa(next)}}
		for name, value := range map[string]string{"who": v.Who, "what": v.What, "since": v.Since} {
			if value != "" {
				older.Set(name, value)
			}
		}
		v.Older = "/audit?" + older.Encode()
	}
	return c.out.Page(w, r, http.StatusOK, "audit", v)
}
