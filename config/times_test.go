package config

import (
	"strings"
	"testing"
	"time"
)

// The times of a schedule are those of robfig/cron in its zone: a time that the clocks skip does not come, and one that
// they repeat comes twice.
func TestTimesOfSchedules(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, after, want string }{
		// Friday 07:00 to Monday, in summer
		{"every weekday at 07:00 Europe/Berlin", "2026-03-27T06:00:00Z", "2026-03-30T05:00:00Z"},
		{"0 7 * * 1-5 Europe/Berlin", "2026-03-27T06:00:00Z", "2026-03-30T05:00:00Z"},
		{"every day at 7:05", "2026-01-01T07:05:00Z", "2026-01-02T07:05:00Z"},
		{"every Monday, tuesday and sunday at 18:30 UTC", "2026-01-01T00:00:00Z", "2026-01-04T18:30:00Z"},
		{"0 7 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T07:00:00Z"},
		{"0 7 * * 1,6-7", "2026-01-03T12:00:00Z", "2026-01-04T07:00:00Z"},
		{"every hour Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"},
		{"30 2 * * * Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"}, // skipped
		{"30 2 * * * Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"}, // repeated
		{"30 2 * * * Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"30 2 * * * Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		{"30 * * * * Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"0 12 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T12:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		times, err := Schedule{When: tc.text}.Times()
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if got := times.Next(after).UTC().Format(time.RFC3339); got != tc.want {
			t.Errorf("%s: after %s comes %s, want %s", tc.text, tc.after, got, tc.want)
		}
	}
}

func TestTimesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "is neither",
		"now and then":                       "is neither",
		"every day":                          "is neither",
		"every day at 25:00":                 "is neither",
		"every day at 07:00 Europe/Paradise": "names the time zone",
		"0 7 * * * Local":                    "names the time zone",
		"every noon at 12:00":                "is neither",
		"0 0 30 2 *":                         "never comes",
		"@every 1h":                          "is neither",
		"TZ=UTC 0 7 * * *":                   "names the time zone",
	} {
		if _, err := (Schedule{When: text}).Times(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
}
