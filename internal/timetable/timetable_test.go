package timetable

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, after, want string }{
		// Friday 07:00 to Monday, in summer
		{"every weekday at 07:00 Europe/Berlin", "2026-03-27T06:00:00Z", "2026-03-30T05:00:00Z"},
		{"0 7 * * 1-5 Europe/Berlin", "2026-03-27T06:00:00Z", "2026-03-30T05:00:00Z"},
		{"every day at 7:05", "2026-01-01T07:05:00Z", "2026-01-02T07:05:00Z"},
		{"every Monday, tuesday and sunday at 18:30 UTC", "2026-01-01T00:00:00Z", "2026-01-04T18:30:00Z"},
		{"every hour Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"},
		// skipped: when the clock has jumped
		{"30 2 * * * Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * * Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"15,30 2,3 * * * Europe/Berlin", "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * * Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"}, // repeated: the first time
		{"30 2 * * * Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"30 2 * * * Europe/Berlin", "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z"},
		// every hour: the repeated one as well
		{"30 * * * * Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		{"0 0 * * * America/Sao_Paulo", "2018-11-03T12:00:00Z", "2018-11-04T03:00:00Z"},
		{"0 12 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T12:00:00Z"},
		{"0 1 * * * Europe/London", "2026-10-24T12:00:00Z", "2026-10-25T00:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, tc.after)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Parse(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if got := table.Next(after).UTC().Format(time.RFC3339); got != tc.want {
			t.Errorf("%s: after %s comes %s, want %s", tc.text, tc.after, got, tc.want)
		}
	}
}

func TestParseProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "has no times",
		"now and then":                       "is neither",
		"every day":                          "must be like",
		"every day at 25:00":                 "is neither",
		"every day at 07:00 Europe/Paradise": "names the time zone",
		"0 7 * * * Local":                    "names the time zone",
		"every noon at 12:00":                `names the day "noon"`,
		"0 0 30 2 *":                         "never comes",
		"@every 1h":                          "is neither",
		"TZ=UTC 0 7 * * *":                   "names the time zone",
	} {
		if _, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
}

func TestLatest(t *testing.T) {
	t.Parallel()
	table, err := Parse("0 7 1 * *")
	if err != nil {
		t.Fatal(err)
	}
	day := func(month, day, hour int) time.Time {
		return time.Date(2026, time.Month(month), day, hour, 0, 0, 0, time.UTC)
	}
	for _, tc := range []struct{ after, until, want time.Time }{
		{day(1, 1, 7), day(1, 20, 0), time.Time{}},
		{day(1, 1, 6), day(1, 1, 7), day(1, 1, 7)},
		{day(1, 1, 7), day(6, 20, 0), day(6, 1, 7)},
		{day(6, 20, 0), day(6, 19, 0), time.Time{}}, // the clock went back
	} {
		if got := table.Latest(tc.after, tc.until); !got.Equal(tc.want) {
			t.Errorf("after %v until %v: %v, want %v", tc.after, tc.until, got, tc.want)
		}
	}
}

func Example() {
	table, err := Parse("every weekday at 07:00 Europe/Berlin")
	if err != nil {
		panic(err)
	}
	fmt.Println(table.Next(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)))
	// Output: 2026-03-30 07:00:00 +0200 CEST
}
