package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
)

// Ready returns an error if the process cannot work. The error is public: it contains no address.
func (p *Parts) Ready(ctx context.Context) error {
	findings, err := p.Store.Doctor.Diagnose(ctx)
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

// diagnoseLimit bounds how long a start waits for Redis.
const diagnoseLimit = 3 * time.Second

// checkStart logs findings about the configuration and Redis. A Redis that does not answer is not an error, see
// awaitRedis. A Redis that accepts connections without a password is, unless the operator allows it.
func (p *Parts) checkStart(ctx context.Context) error {
	p.logFindings(ctx, "configuration", p.notices)
	unreachable, err := p.checkRedis(ctx)
	if unreachable != nil {
		p.Log.Warn("redis does not answer", "err", unreachable, "remedy", "check that Redis runs and that REDIS_URL is right")
	}
	return err
}

// awaitRedis waits until Redis has answered once, and returns an error if Redis must not be used. It returns nil when
// ctx ends.
func (p *Parts) awaitRedis(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !p.redisChecked {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := p.checkRedis(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkRedis logs the findings about Redis. It returns why Redis did not answer, or why it must not be used.
func (p *Parts) checkRedis(ctx context.Context) (unreachable, refused error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	findings, err := p.Store.Doctor.Diagnose(ctx)
	if err != nil {
		return err, nil
	}
	p.redisChecked = true
	p.logFindings(ctx, "redis", findings)
	for _, f := range findings {
		if f.Severity == store.Fatal && f.What == store.OpenRedis {
			return nil, fmt.Errorf("start: %s. %s %s", f.What, f.Why, f.Remedy)
		}
	}
	return nil, nil
}

func (p *Parts) logFindings(ctx context.Context, about string, findings []store.Finding) {
	levels := map[store.Severity]slog.Level{store.Fatal: slog.LevelError, store.Warning: slog.LevelWarn}
	for _, f := range findings {
		p.Log.Log(ctx, levels[f.Severity], about, "what", f.What, "why", f.Why, "remedy", f.Remedy) //nolint:sloglint // one of two constants; a note is LevelInfo, which is 0
	}
}

// redisLog sends the Redis library's messages to the log.
type redisLog struct{ log *slog.Logger }

// Printf logs one line.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, "redis", "what", strings.TrimPrefix(fmt.Sprintf(format, v...), "redis: "),
		"remedy", "if this continues, check that Redis runs and that REDIS_URL is right")
}

// queuesRedis returns the Redis options of the queue pages. asynq's own URL parser drops the user name.
func queuesRedis(url config.RedisURL) (asynq.RedisClientOpt, error) {
	o, err := redis.ParseURL(url.Reveal())
	if err != nil {
		return asynq.RedisClientOpt{}, errors.New("parse REDIS_URL for the queue pages") // err would quote it
	}
	return asynq.RedisClientOpt{Network: o.Network, Addr: o.Addr, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig}, nil
}

// servers are the agent's servers of tools.
func servers(c config.Config) []agent.MCPServer {
	var list []agent.MCPServer
	for _, name := range slices.Sorted(maps.Keys(c.Routing.MCP)) {
		s := c.Routing.MCP[name]
		m := agent.MCPServer{Name: name, Type: s.Kind(), Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers}
		for _, p := range s.Profiles {
			m.Profiles = append(m.Profiles, agent.Profile(p))
		}
		list = append(list, m)
	}
	return list
}

// redactor knows every secret that errand was given.
func redactor(c config.Config) *agent.Redactor {
	return agent.NewRedactor(append(c.Secrets(), agent.ServerSecrets(servers(c), os.Getenv)...)...)
}
