package web

import (
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/tasks"
)

// costsCSV sends the table as a file: a column for each group, then sums. A row of other runs has "(other)" for each name.
func (h *Handler) costsCSV(w http.ResponseWriter, c costs) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="costs-`+c.From+`-to-`+c.To+`.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write(append(words(c.By), // the reader may be gone, here and below
		"cost_usd", "runs", "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
	for _, row := range c.Rows {
		var line []string
		for _, group := range c.By {
			name := row.Name(group)
			if row.Other && group != tasks.ByDay {
				name = "(other)"
			}
			line = append(line, inert(name))
		}
		line = append(line, strconv.FormatFloat(row.USD, 'f', -1, 64))
		for _, n := range []int64{row.Runs, row.Usage.Input, row.Usage.Output, row.Usage.CacheRead, row.Usage.CacheCreation} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		_ = out.Write(line)
	}
	out.Flush()
}

// What a spreadsheet may take for the beginning of a formula, in either width, and for the end of a cell: where the comma is a decimal
// point, a semicolon is one, whatever is in quotes (owasp.org, CSV Injection).
const (
	formulas = "=+-@＝＋－＠"
	cellEnds = ";\t\r\n"
)

// inert makes a cell of a name that nothing takes for a formula.
func inert(name string) string {
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
