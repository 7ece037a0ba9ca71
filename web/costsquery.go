package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

const (
	day         = 24 * time.Hour
	defaultDays = 30
)

// costsQuery is which costs are asked for.
type costsQuery struct {
	tasks.CostQuery
	Days int // the last so many, today included; 0: other days
}

// readCosts reads it; a problem's status of 0 means that all is well.
func readCosts(q url.Values, now time.Time) (costsQuery, problem) {
	bad := func(format string, args ...any) (costsQuery, problem) {
		return costsQuery{}, problem{http.StatusBadRequest, "Invalid query", fmt.Sprintf(format, args...)}
	}
	c := costsQuery{CostQuery: tasks.CostQuery{
		Person: q.Get("person"), Channel: q.Get("channel"), Repo: q.Get("repository"), Model: q.Get("model"),
	}}
	for _, word := range []string{c.Person, c.Channel, c.Repo, c.Model} {
		if len(word) > maxFilter {
			return bad("What to filter by has at most %d bytes.", maxFilter)
		}
	}
	for _, by := range q["by"] {
		if !slices.Contains(tasks.CostGroups, tasks.CostGroup(by)) {
			return bad("Costs are grouped by %s.", list(words(tasks.CostGroups)))
		}
	}
	for _, group := range tasks.CostGroups { // in the order of the columns
		if slices.Contains(q["by"], string(group)) {
			c.By = append(c.By, group)
		}
	}
	if len(c.By) == 0 {
		c.By = []tasks.CostGroup{tasks.ByDay}
	}
	if detail := c.readDays(q, now.UTC().Truncate(day)); detail != "" {
		return bad("%s", detail)
	}
	return c, problem{}
}

// readDays reads of which days; what it returns is what is wrong with them.
func (c *costsQuery) readDays(q url.Values, today time.Time) string {
	oldest := oldestDay(today)
	c.First, c.Last = today.AddDate(0, 0, 1-defaultDays), today
	if q.Get("from") == "" && q.Get("to") == "" {
		c.Days = defaultDays
		if text := q.Get("days"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > store.CostDays {
				return fmt.Sprintf("Days are a number from 1 to %d.", store.CostDays)
			}
			c.Days, c.First = n, today.AddDate(0, 0, 1-n)
		}
		return ""
	}
	var err error
	if text := q.Get("to"); text != "" {
		if c.Last, err = time.Parse(time.DateOnly, text); err != nil {
			return "From and to are days such as 2026-01-31."
		}
		c.Last = earlier(c.Last, today) // no later one has come yet
		c.First = later(c.Last.AddDate(0, 0, 1-defaultDays), oldest)
	}
	if text := q.Get("from"); text != "" {
		if c.First, err = time.Parse(time.DateOnly, text); err != nil {
			return "From and to are days such as 2026-01-31."
		}
	}
	switch {
	case q.Get("days") != "":
		return "Say either how many days, or from which one to which."
	case c.First.Before(oldest):
		return fmt.Sprintf("Costs are kept for %d days, now from %s on.", store.CostDays, oldest.Format(time.DateOnly))
	case c.First.After(c.Last):
		return fmt.Sprintf("There are no days from %s to %s.", c.First.Format(time.DateOnly), c.Last.Format(time.DateOnly))
	}
	return ""
}

// values is the query as a URL has it: the inverse of readCosts.
func (c costsQuery) values() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{"person": c.Person, "channel": c.Channel, "repository": c.Repo, "model": c.Model} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if !slices.Equal(c.By, []tasks.CostGroup{tasks.ByDay}) {
		q["by"] = words(c.By)
	}
	switch c.Days {
	case 0:
		q.Set("from", c.First.Format(time.DateOnly))
		q.Set("to", c.Last.Format(time.DateOnly))
	case defaultDays:
	default:
		q.Set("days", strconv.Itoa(c.Days))
	}
	return q
}

// url is the page of the query, changed a little.
func (c costsQuery) url(change ...func(*costsQuery)) string {
	for _, ch := range change {
		ch(&c)
	}
	to := url.URL{Path: "/costs", RawQuery: c.values().Encode()}
	return to.String()
}

// list is several words in a sentence.
func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// oldestDay is the first day of which there may be costs.
func oldestDay(today time.Time) time.Time { return today.AddDate(0, 0, 1-store.CostDays) }

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
