package store

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// CostDays is for how many days costs are kept, the present one included.
const CostDays = 90

// costStep is how many days are read in one round trip: all that is held of them at once.
const costStep = 10

// Tokens are those that passed between runs and the model.
type Tokens struct{ Input, Output, CacheRead, CacheCreation int64 }

// Expense is what one run came to.
type Expense struct {
	USD   float64
	Model string // with which it ran, in one line; opaque
	Tokens
}

// Cost is what the runs of a day came to whose tasks have the same scopes, with one model.
type Cost struct {
	Day    time.Time // on which they were settled, by Redis' clock: its midnight, UTC
	Scopes []string
	Model  string
	Other  bool // those beyond [Config.CostCap], whatever their scopes and models: nobody knows these any more

	Runs int64
	USD  float64
	Tokens
}

// Days reads what was settled on these days, UTC, the first and the last included, in no order within a day. It is the same truth as
// [Costs.Spent], written in the same step, but lives longer. Runs that were lost with their worker are not in it: nobody knows what they
// had cost. What is wrong comes as an error, once, as the last element.
func (s *Costs) Days(ctx context.Context, first, last time.Time) iter.Seq2[Cost, error] {
	return func(yield func(Cost, error) bool) {
		from, to := dayOf(first), dayOf(last)
		for ; from <= to; from += costStep {
			days, err := s.readDays(ctx, from, min(from+costStep-1, to))
			if err != nil {
				yield(Cost{}, fmt.Errorf("read costs: %w", err))
				return
			}
			for i, cells := range days {
				for cell, sums := range cells {
					if !yield(decodeCost(from+int64(i), cell, sums), nil) {
						return
					}
				}
			}
		}
	}
}

// readDays reads some days as they are stored.
func (s *Costs) readDays(ctx context.Context, from, to int64) ([]map[string]string, error) {
	var replies []*redis.MapStringStringCmd
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		for day := from; day <= to; day++ {
			replies = append(replies, p.HGetAll(ctx, s.key.costs(strconv.FormatInt(day, 10))))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	days := make([]map[string]string, len(replies))
	for i, r := range replies {
		days[i] = r.Val()
	}
	return days, nil
}

// decodeCost reads a field as spend.lua writes it.
func decodeCost(day int64, cell, sums string) Cost {
	c := Cost{Day: time.Unix(day*86400, 0).UTC()}
	if end := strings.LastIndexByte(cell, '\n'); end < 0 {
		c.Other = true
	} else {
		c.Scopes, c.Model = lines(cell[:end]), cell[end+1:]
	}
	var n [6]int64
	for i, sum := range strings.Fields(sums) {
		if i < len(n) {
			n[i], _ = strconv.ParseInt(sum, 10, 64)
		}
	}
	c.USD, c.Runs, c.Tokens = float64(n[0])/1e6, n[1], Tokens{n[2], n[3], n[4], n[5]}
	return c
}

// dayOf is the day of a time, as days since 1970, UTC.
func dayOf(t time.Time) int64 { return t.Unix() / 86400 }
