package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/auth"
)

// auditRows is how many entries a page of the audit log shows.
const auditRows = 100

// auditView is a page of the audit log.
type auditView struct {
	Who, What, Since string // the filters
	From             []choice
	Entries          []auditRow
	Older            string // the URL of the next page; empty on the last
	Verified         bool   // the chain was checked
	Intact           int    // entries that match
	Problem          string // of the first that does not; empty: none
}

// Filtered reports whether some entries are left out.
func (v auditView) Filtered() bool {
	return v.Who+v.What+v.Since != "" || slices.ContainsFunc(v.From, func(c choice) bool { return c.Here })
}

// auditRow is an entry and what came of it in a word.
type auditRow struct {
	desk.AuditEntry
	Outcome, Level string
}

// auditWords says in words what an entry records: a source's action, or the method and path of a request, in which *
// stands for the name that takes the place of %s.
var auditWords = [][2]string{
	{"answer", "answered"},
	{"approve", "answered"},
	{"deny", "answered"},
	{"cancel", "stopped"},
	{"stop", "stopped"},
	{"login", "logged in"},
	{"retry", "retried"},
	{"take", "took over"},
	{"vote", "rated"},
	{"mcp answer", "answered"},
	{"mcp cancel", "stopped"},
	{"mcp submit", "started"},
	{"POST /tasks/*/answer", "answered"},
	{"POST /tasks/*/cancel", "stopped"},
	{"POST /tasks/*/retry", "retried"},
	{"POST /tasks/*/take", "took over"},
	{"POST /chat", "started"},
	{"logout", "logged out"},
	{"POST /fleet/classes/*/pause", "paused %s"},
	{"POST /fleet/classes/*/resume", "resumed %s"},
	{"POST /fleet/workers/*/cordon", "cordoned %s"},
	{"POST /fleet/workers/*/uncordon", "uncordoned %s"},
	{"POST /fleet/environments/*/rebuild", "rebuilt the environment %s"},
	{"POST /schedules/*/resume", "resumed schedule %s"},
	{"POST /tokens", "created a token"},
	{"DELETE /tokens/*", "revoked token %s"},
	{"DELETE /links/*", "removed the link of %s"},
}

// Words says what was done, as it was recorded if there are no words for it.
func (r auditRow) Words() string {
	done := strings.Replace(r.What, " /api/", " /", 1)
	for _, one := range auditWords {
		before, after, named := strings.Cut(one[0], "*")
		name, ok := strings.CutPrefix(done, before)
		if ok {
			name, ok = strings.CutSuffix(name, after)
		}
		if ok && named == (name != "") {
			return strings.ReplaceAll(one[1], "%s", name)
		}
	}
	return r.What
}

// To returns the page that the entry is about, or "".
func (r auditRow) To() string {
	if id := r.Task(); id != "" {
		return "/tasks/" + id
	}
	if strings.HasPrefix(r.Result, "/chat/") {
		return r.Result
	}
	return ""
}

// Leads names the page that To returns.
func (r auditRow) Leads() string {
	if id := r.Task(); id != "" {
		return "task " + display.TaskID(id)
	}
	return "a conversation"
}

func newAuditRow(e desk.AuditEntry) auditRow {
	for _, text := range []*string{&e.Who, &e.Name, &e.What, &e.Result, &e.Answer} {
		*text = display.Line(*text)
	}
	row := auditRow{AuditEntry: e, Outcome: "done", Level: "ok"}
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
	for _, name := range auth.AuditSources {
		v.From = append(v.From, choice{Label: name, Here: name == q.From})
	}
	if v.Verified {
		if v.Intact, v.Problem, err = c.Audit.Verify(r.Context()); err != nil {
			return err
		}
	}
	list, next, err := c.Audit.List(r.Context(), q)
	if err != nil {
		return err
	}
	for _, e := range list {
		v.Entries = append(v.Entries, newAuditRow(e))
	}
	if next > 0 {
		older := url.Values{"skip": {strconv.Itoa(next)}}
		for name, value := range map[string]string{"who": v.Who, "what": v.What, "from": q.From, "since": v.Since} {
			if value != "" {
				older.Set(name, value)
			}
		}
		v.Older = "/audit?" + older.Encode()
	}
	return c.Out.Page(w, r, http.StatusOK, "audit", v)
}
