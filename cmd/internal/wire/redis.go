package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Ready tells whether the process can do its part. Everybody may hear the error: it names no address.
func (p *Parts) Ready(ctx context.Context) error {
	findings, err := p.Store.Diagnose(ctx)
	if err != nil {
		return errors.New("no answer from Redis")
	}
	for _, f := range findings {
		if f.Severity == store.Fatal {
			return errors.New(f.What)
		}
	}
	return nil
}

// greeting bounds how long a start waits to hear from Redis.
const greeting = 3 * time.Second

// Greet says in the log what an operator should know of the configuration and of Redis. One that does not answer is waited for by whoever
// needs it, see [Parts.Await]. One that is open to everybody is an error, unless the operator has agreed to it: begin no work then.
func (p *Parts) Greet(ctx context.Context) error {
	p.log(ctx, "configuration", p.notices)
	silent, err := p.meet(ctx)
	if silent != nil {
		p.Log.Warn("redis does not answer", "err", silent, "remedy", "look whether it runs, and whether REDIS_URL is right")
	}
	return err
}

// Await waits until Redis answers, if it did not when it was greeted, and then does what Greet would have done. A worker begins no work before
// it returns. It returns nil as well when ctx ends.
func (p *Parts) Await(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !p.met {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := p.meet(ctx); err != nil {
			return err
		}
	}
	return nil
}

// meet looks at Redis: silent is why it did not answer, err why no work may begin on it.
func (p *Parts) meet(ctx context.Context) (silent, err error) {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	findings, silent := p.Store.Diagnose(ctx)
	if silent != nil {
		return silent, nil
	}
	p.met = true
	p.log(ctx, "redis", findings)
	for _, f := range findings {
		if f.Severity == store.Fatal && f.What == store.OpenRedis {
			return nil, fmt.Errorf("start: %s. %s %s", f.What, f.Why, f.Remedy)
		}
	}
	return nil, nil
}

func (p *Parts) log(ctx context.Context, about string, findings []store.Finding) {
	levels := map[store.Severity]slog.Level{store.Fatal: slog.LevelError, store.Warning: slog.LevelWarn}
	for _, f := range findings {
		p.Log.Log(ctx, levels[f.Severity], about, "what", f.What, "why", f.Why, "remedy", f.Remedy) //nolint:sloglint // one of two constants; a note is LevelInfo, which is 0
	}
}

// redisLog takes what the library has to say of its connections, which it would print as it is.
type redisLog struct{ log *slog.Logger }

// Printf logs one line.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, "redis", "what", strings.TrimPrefix(fmt.Sprintf(format, v...), "redis: "),
		"remedy", "if this goes on, look whether Redis runs, and whether REDIS_URL is right")
}

// queuesRedis is how the pages of the queues reach Redis. asynq reads an address by itself, but leaves the user's name out.
func queuesRedis(url config.RedisURL) (asynq.RedisClientOpt, error) {
	o, err := redis.ParseURL(url.Reveal())
	if err != nil {
		return asynq.RedisClientOpt{}, errors.New("parse REDIS_URL for the queue pages") // err would quote it
	}
	return asynq.RedisClientOpt{Network: o.Network, Addr: o.Addr, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig}, nil
}
