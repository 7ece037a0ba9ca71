package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // images have no zones

	"github.com/robfig/cron/v3"
)

var (
	fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	inWords    = regexp.MustCompile(`^every ([a-z, ]+) at ([0-9]{1,2}):([0-9]{2})\b`)
	daysOfCron = strings.NewReplacer(
		"weekday", "1-5", "sunday", "0", "monday", "1", "tuesday", "2", "wednesday", "3", "thursday", "4",
		"friday", "5", "saturday", "6", "day", "*", " and ", ",", ", ", ",", " ", ",",
	)
	// 7 is Sunday for cron, as 0 is; not as a step, and no range begins with it
	sundays = strings.NewReplacer("/7", "/7", "7-", "7-", "-7", "-6,0", "7", "0")
)

// Times returns the times that s.When says: the five fields of cron, "every DAYS at HH:MM", where DAYS is day, weekday
// or names of days, or "every hour". The name of a time zone may follow; the default is UTC. The error is a clause
// about the text.
func (s Schedule) Times() (cron.Schedule, error) {
	words := strings.Fields(cronOf(strings.Join(strings.Fields(s.When), " ")))
	zone := time.UTC
	if len(words) == 6 {
		var err error
		if zone, err = time.LoadLocation(words[5]); err != nil || zone == time.Local {
			return nil, fmt.Errorf("names the time zone %q, which does not exist", words[5])
		}
		words = words[:5]
	}
	if len(words) == 5 {
		words[4] = sundays.Replace(words[4])
	}
	times, err := fiveFields.Parse("CRON_TZ=" + zone.String() + " " + strings.Join(words, " "))
	if err != nil {
		return nil, fmt.Errorf("is neither like \"every weekday at 07:00\" nor cron's five fields (%w)", err)
	}
	if times.Next(time.Now()).IsZero() {
		return nil, errors.New("never comes")
	}
	return times, nil
}

// cronOf returns the fields of cron for times in words, and other text as it is.
func cronOf(when string) string {
	lower := strings.ToLower(when)
	if strings.HasPrefix(lower, "every hour") {
		return "0 * * * *" + when[len("every hour"):]
	}
	m := inWords.FindStringSubmatch(lower)
	if m == nil {
		return when
	}
	return fmt.Sprintf("%s %s * * %s", m[3], m[2], daysOfCron.Replace(m[1])) + when[len(m[0]):]
}
