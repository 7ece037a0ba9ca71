package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Tally counts the tasks of the last days by hour.
type Tally struct{ *conn }

// Hour counts what happened in one hour, by Redis' clock.
type Hour struct {
	Start  time.Time
	Ended  map[string]int          // tasks by the kind of their ending
	Waited map[string]Distribution // tasks whose first run started, by class
}

// Distribution counts times by their order of magnitude: its n-th number is of those up to 2^n seconds, above the
// previous one's.
type Distribution []int

// Add adds the counts of another distribution.
func (d Distribution) Add(o Distribution) Distribution {
	sum := append(Distribution{}, d...)
	for i, n := range o {
		for len(sum) <= i {
			sum = append(sum, 0)
		}
		sum[i] += n
	}
	return sum
}

// Quantile returns an upper bound of the time that a share of those counted do not exceed, or 0 if nothing was counted.
// The time is at least half of it, or below a second.
func (d Distribution) Quantile(share float64) time.Duration {
	all := 0
	for _, n := range d {
		all += n
	}
	seen := 0
	for i, n := range d {
		if seen += n; all > 0 && float64(seen) >= share*float64(all) {
			return time.Duration(math.Exp2(float64(i))) * time.Second
		}
	}
	return 0
}

// maxTallyHours is how many hours are kept at least.
const maxTallyHours = 7 * 24

// Hours returns the last n hours up to now, at most 7 days, the oldest first. Absorbed tasks count, and a task that is
// retried counts for each of its endings.
func (s *Tally) Hours(ctx context.Context, n int) ([]Hour, error) {
	now, err := s.redis.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("read tally: %w", err)
	}
	last, n := now.UTC().Truncate(time.Hour), min(n, maxTallyHours)
	list := make([]Hour, n)
	days := map[int64]*redis.MapStringStringCmd{}
	_, err = s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range list {
			list[i] = Hour{last.Add(time.Duration(i-n+1) * time.Hour), map[string]int{}, map[string]Distribution{}}
			if day := dayOf(list[i].Start); days[day] == nil {
				days[day] = p.HGetAll(ctx, s.key("tally", fmt.Sprint(day)))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read tally: %w", err)
	}
	for _, h := range list {
		prefix := strconv.Itoa(h.Start.Hour()) + " "
		for field, count := range days[dayOf(h.Start)].Val() {
			if rest, ok := strings.CutPrefix(field, prefix); ok {
				h.count(rest, number(count))
			}
		}
	}
	return list, nil
}

// count decodes a field without its hour: "ended <kind>" or "waited <class> <order>".
func (h Hour) count(field string, n int) {
	what, name, _ := strings.Cut(field, " ")
	if what == "ended" {
		h.Ended[name] += n
		return
	}
	class, order, _ := strings.Cut(name, " ")
	d := make(Distribution, min(max(number(order), 0), 40)+1)
	d[len(d)-1] = n
	h.Waited[class] = h.Waited[class].Add(d)
}
