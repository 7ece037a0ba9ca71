package wire

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/store"
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
// needs it.
func (p *Parts) Greet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	p.log(ctx, "configuration", p.notices)
	findings, err := p.Store.Diagnose(ctx)
	if err != nil {
		p.Log.Warn("redis does not answer", "err", err)
		return
	}
	p.log(ctx, "redis", findings)
}

func (p *Parts) log(ctx context.Context, about string, findings []store.Finding) {
	levels := map[store.Severity]slog.Level{store.Fatal: slog.LevelError, store.Warning: slog.LevelWarn}
	for _, f := range findings {
		p.Log.Log(ctx, levels[f.Severity], about, "what", f.What, "why", f.Why, "remedy", f.Remedy) // a note is LevelInfo, which is 0
	}
}
