package view

import (
	"net/url"
	"testing"
	"time"
)

func TestDaysOfCosts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 23, 59, 0, 0, time.FixedZone("", -5*3600)) // in UTC it is April
	for query, want := range map[string]string{
		"":                              "2026-03-03 2026-04-01 ",
		"days=1":                        "2026-04-01 2026-04-01 days=1",
		"days=90":                       "2026-01-02 2026-04-01 days=90",
		"from=2026-03-31":               "2026-03-31 2026-04-01 from=2026-03-31&to=2026-04-01",
		"from=2026-03-01&to=2026-03-02": "2026-03-01 2026-03-02 from=2026-03-01&to=2026-03-02",
		"to=2026-03-02":                 "2026-02-01 2026-03-02 from=2026-02-01&to=2026-03-02",
		"to=2026-01-09":                 "2026-01-02 2026-01-09 from=2026-01-02&to=2026-01-09",
		"to=2027-01-01":                 "2026-03-03 2026-04-01 from=2026-03-03&to=2026-04-01",
		"by=model&by=day&person=%26":    "2026-03-03 2026-04-01 by=day&by=model&person=%26",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseCosts(q, now)
		if got := c.First.Format(time.DateOnly) + " " + c.Last.Format(time.DateOnly) + " " +
			c.Values().Encode(); got != want || err != nil {
			t.Errorf("%s: %s, %+v, want %s", query, got, err, want)
		}
	}
}
