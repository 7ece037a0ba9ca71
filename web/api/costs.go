package api

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

// costRows is how many rows the JSON has at most. The CSV file has all.
const costRows = 5000

// Costs is the response of GET /api/costs.
type Costs struct {
	From string            `json:"from"` // first and last day, UTC
	To   string            `json:"to"`
	By   []tasks.CostGroup `json:"by"`
	tasks.Costs
}

func (a *API) costs(w http.ResponseWriter, r *http.Request) error {
	limit, format := costRows, r.URL.Query().Get("format")
	switch format {
	case "", "json":
	case "csv":
		limit = 0
	default:
		return respond.BadQuery("format must be json or csv.")
	}
	found, q, err := a.View.Costs(r.Context(), r.URL.Query(), limit)
	if err != nil {
		return err
	}
	c := Costs{q.First.Format(time.DateOnly), q.Last.Format(time.DateOnly), q.By, found}
	if format == "csv" {
		writeCSV(w, c)
		return nil
	}
	return a.Out.JSON(w, http.StatusOK, c)
}

// writeCSV sends costs as a file: a column for each group, then the sums. Names of a row of other runs are "(other)".
func writeCSV(w http.ResponseWriter, c Costs) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="costs-`+c.From+`-to-`+c.To+`.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write(append(view.Strings(c.By), // the client may be gone, here and below
		"cost_usd", "runs", "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
	for _, row := range c.Rows {
		var line []string
		for _, group := range c.By {
			name := row.Name(group)
			if row.Other && group != tasks.ByDay {
				name = "(other)"
			}
			line = append(line, escapeFormula(name))
		}
		line = append(line, strconv.FormatFloat(row.USD, 'f', -1, 64))
		for _, n := range []int64{row.Runs, row.Usage.Input, row.Usage.Output, row.Usage.CacheRead, row.Usage.CacheCreation} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		_ = out.Write(line)
	}
	out.Flush()
}

// Characters that a spreadsheet may take for the beginning of a formula, in either width, and for the end of a cell:
// where the comma is the decimal point, a semicolon ends a cell, even in quotes (owasp.org, CSV Injection).
const (
	formulas = "=+-@＝＋－＠"
	cellEnds = ";\t\r\n"
)

// escapeFormula returns a name that no spreadsheet takes for a formula.
func escapeFormula(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(cellEnds, r) {
			return ' '
		}
		return r
	}, name)
	if first, _ := utf8.DecodeRuneInString(strings.TrimSpace(name)); strings.ContainsRune(formulas, first) {
		return "'" + name
	}
	return name
}
