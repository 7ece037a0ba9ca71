package automation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// In a year with both changes of the clocks, three front doors whose clocks differ run each time of each schedule once:
// none that the clocks skip, and both of those that they repeat.
func TestYear(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	begin, end := time.Date(2026, 1, 1, 0, 0, 0, 0, berlin), time.Date(2027, 1, 1, 0, 0, 0, 0, berlin)
	f := newFleet(t, begin, rights.Policy{})
	list := func() []Automation {
		return []Automation{
			// not on 29 March, twice on 25 October
			{Name: "night", When: "30 2 * * * Europe/Berlin", Prompt: "Clean up."},
			{Name: "work", When: "0 7 * * 1-5 Europe/Berlin", Prompt: "Report."},
			{Name: "month", When: "0 0 1 * * Europe/Berlin", Prompt: "Sum up."},
		}
	}
	const skew = 2 * time.Second
	for _, off := range []time.Duration{-skew, 0, skew} {
		f.start(rights.Policy{}, off, list()...)
	}
	ticks := map[string][]string{}
	f.look(begin.Add(-time.Minute))
	for at := begin; at.Before(end); at = at.Add(30 * time.Minute) { // every time of a schedule is one of these
		if local := at.In(berlin); !slices.Contains([]string{"00:00", "02:30", "07:00"},
			local.Format("15:04")) {
			continue
		}
		f.look(at.Add(-skew)) // it has come for one of them
		f.look(at.Add(skew))  // and now for all
		for _, id := range f.created() {
			name := id[strings.LastIndexByte(id, '-')+1:]
			ticks[name] = append(ticks[name], tasks.Born(id).In(berlin).Format("2006-01-02 15:04"))
			if status := f.Status(id); status.Task.Thread != "schedule/"+name+"/"+
				tasks.Born(id).UTC().Format("20060102-1504") {
				t.Errorf("thread %s", status.Task.Thread)
			}
			f.end(id, tasks.Answered)
		}
	}
	want := map[string][]string{}
	for day := begin; day.Before(end); day = day.AddDate(0, 0, 1) {
		date := day.Format(time.DateOnly)
		if date != "2026-03-29" {
			want["night"] = append(want["night"], date+" 02:30")
		}
		if date == "2026-10-25" {
			want["night"] = append(want["night"], date+" 02:30")
		}
		if day.Weekday() != time.Saturday && day.Weekday() != time.Sunday {
			want["work"] = append(want["work"], date+" 07:00")
		}
		if day.Day() == 1 {
			want["month"] = append(want["month"], date+" 00:00")
		}
	}
	for name := range want {
		if !slices.Equal(ticks[name], want[name]) {
			t.Errorf("%s: %d tasks, want %d:\n%v\n%v", name, len(ticks[name]), len(want[name]), ticks[name], want[name])
		}
	}
}
