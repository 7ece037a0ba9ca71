// Package timetable reads when something is to happen again and again, such as "every weekday at 07:00 Europe/Berlin",
// and computes the times.
//
// A time that names an hour is a time on the clock of its zone: it comes once on every day, also when the clocks
// change. If they skip it, it comes when they have jumped; if they repeat it, it comes the first time. A time in every
// hour comes in every hour that passes. The time zones are built in. A [Timetable] may be used from any goroutine.
package timetable

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // images have no zones

	"github.com/robfig/cron/v3"
)

// Timetable is a series of times without an end. Make it with Parse.
type Timetable struct {
	spec   *cron.SpecSchedule
	zone   *time.Location
	hourly bool // in every hour
}

// MaxSchedules keeps a look at all schedules short.
const MaxSchedules = 100

// Name describes the names of schedules, and of hooks and webhooks, which are part of IDs.
var Name = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

var (
	cronForm  = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	plainForm = regexp.MustCompile(`^every ([a-z, ]+?)(?: at ([0-9]{1,2}):([0-9]{2}))?$`)
	days      = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// Parse reads the five fields of cron or "every DAYS at HH:MM", where DAYS is day, weekday or names of days, or "every
// hour". The name of a time zone may follow; the default is UTC. The error is a clause about the text.
func Parse(text string) (Timetable, error) {
	words := strings.Fields(text)
	t := Timetable{zone: time.UTC}
	if len(words) == 0 {
		return t, errors.New("has no times")
	}
	if last := len(words) - 1; last == 5 && words[0] != "every" ||
		last > 0 && words[0] == "every" && zoneForm.MatchString(words[last]) {
		zone, err := time.LoadLocation(words[last])
		if err != nil || strings.EqualFold(words[last], "local") {
			return t, fmt.Errorf("names the time zone %q, which does not exist", words[last])
		}
		t.zone, words = zone, words[:last]
	}
	fields := strings.Join(words, " ")
	if len(words) > 0 && strings.EqualFold(words[0], "every") {
		var err error
		if fields, err = plain(strings.ToLower(fields)); err != nil {
			return t, err
		}
	}
	parsed, err := cronForm.Parse(fields)
	if err != nil {
		return t, fmt.Errorf("is neither like \"every weekday at 07:00\" nor cron's five fields (%w)", err)
	}
	t.spec, _ = parsed.(*cron.SpecSchedule) // the only type without descriptors
	if t.spec == nil {
		return t, errors.New("must not name a time zone in front")
	}
	const allHours = 1<<24 - 1
	t.hourly = t.spec.Hour&allHours == allHours
	t.spec.Location = time.UTC // of the clock's times; see Next
	if t.hourly {
		t.spec.Location = t.zone
	}
	if t.Next(time.Now()).IsZero() {
		return t, errors.New("never comes")
	}
	return t, nil
}

// zoneForm tells the name of a time zone from a day and a time.
var zoneForm = regexp.MustCompile(`^(UTC|[A-Z][A-Za-z_]+/[A-Za-z0-9_+/-]+)$`)

// plain returns the fields of cron for a text in words.
func plain(text string) (string, error) {
	if text == "every hour" {
		return "0 * * * *", nil
	}
	m := plainForm.FindStringSubmatch(text)
	if m == nil || m[2] == "" {
		return "", errors.New(`must be like "every day at 07:00", "every monday and thursday at 18:30" or "every hour"`)
	}
	on := ""
	switch m[1] {
	case "day":
		on = "*"
	case "weekday":
		on = "1-5"
	default:
		var numbers []string
		for name := range strings.FieldsFuncSeq(strings.ReplaceAll(m[1], " and ", ","), func(r rune) bool {
			return r == ',' || r == ' '
		}) {
			day := slices.Index(days, name)
			if day < 0 {
				return "", fmt.Errorf("names the day %q; days are day, weekday, monday to sunday", name)
			}
			numbers = append(numbers, fmt.Sprint(day))
		}
		on = strings.Join(numbers, ",")
	}
	return fmt.Sprintf("%s %s * * %s", m[3], m[2], on), nil
}

// Next returns the first time after another one.
func (t Timetable) Next(after time.Time) time.Time {
	if t.hourly {
		return t.spec.Next(after.In(t.zone))
	}
	for clock := clockOf(after, t.zone); ; {
		// The clock is treated as if it were in UTC, where none is skipped or repeated.
		if clock = t.spec.Next(clock); clock.IsZero() {
			return time.Time{}
		}
		if at := atClock(clock, t.zone); at.After(after) {
			return at
		}
	}
}

// Latest returns the last time after one moment and not after another, or the zero time.
func (t Timetable) Latest(after, until time.Time) (latest time.Time) {
	for back := time.Hour; ; back *= 24 {
		from := until.Add(-back)
		if !from.After(after) {
			from = after
		}
		for at := t.Next(from); !at.IsZero() && !at.After(until); at = t.Next(at) {
			latest = at
		}
		if !latest.IsZero() || from.Equal(after) {
			return latest
		}
	}
}

// clockOf returns what the clock of a zone shows, as if it were in UTC.
func clockOf(at time.Time, zone *time.Location) time.Time {
	at = at.In(zone)
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}

// atClock returns when the clock of a zone first shows that, or the moment when it jumps over that.
func atClock(clock time.Time, zone *time.Location) time.Time {
	at := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), 0, 0, zone)
	start, end := at.ZoneBounds()
	switch shown := clockOf(at, zone); cmp.Compare(shown.Unix(), clock.Unix()) {
	case 1: // in the offset before the jump, it is after it
		return start
	case -1:
		return end
	}
	if start.IsZero() {
		return at
	}
	_, before := start.Add(-time.Second).Zone()
	_, now := at.Zone()
	if first := at.Add(time.Duration(now-before) * time.Second); first.Before(at) && clockOf(first, zone).Equal(clock) {
		return first
	}
	return at
}
