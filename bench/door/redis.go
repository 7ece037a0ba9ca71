package door

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver"
)

// Redis is a separate server for a measurement, with an append-only file as in a fleet.
type Redis struct {
	URL    string
	Client *redis.Client
	server *redisserver.Server
}

// StartRedis starts one in a directory. Stop it.
func StartRedis(ctx context.Context, dir string) (*Redis, error) {
	path, ok := redisserver.Find()
	if !ok {
		return nil, errors.New("redis-server is missing: run make setup")
	}
	server, err := redisserver.Start(ctx, redisserver.Config{Path: path, Dir: dir, AppendOnly: true})
	if err != nil {
		return nil, err
	}
	opt, err := redis.ParseURL(server.URL())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("parse the address of Redis: %w", err), server.Stop(ctx))
	}
	return &Redis{URL: server.URL(), Client: redis.NewClient(opt), server: server}, nil
}

// Stop ends it and what it keeps.
func (r *Redis) Stop(ctx context.Context) error {
	return errors.Join(r.Client.Close(), r.server.Stop(context.WithoutCancel(ctx)))
}

// Usage is what Redis has used since its start. Connections and Memory are those of the moment.
type Usage struct {
	CPU         time.Duration
	Commands    int64
	Calls       map[string]int64 // by command, those of scripts included
	Connections int
	Memory      int64 // bytes
}

// Usage asks Redis for it.
func (r *Redis) Usage(ctx context.Context) (Usage, error) {
	info, err := r.Client.Info(ctx, "cpu", "stats", "commandstats", "clients", "memory").Result()
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of Redis: %w", err)
	}
	u := Usage{Calls: map[string]int64{}}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		number, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "used_cpu_sys", "used_cpu_user":
			u.CPU += time.Duration(number * float64(time.Second))
		case "total_commands_processed":
			u.Commands = int64(number)
		case "connected_clients":
			u.Connections = int(number)
		case "used_memory":
			u.Memory = int64(number)
		}
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			u.Calls[command], _ = strconv.ParseInt(calls, 10, 64)
		}
	}
	return u, nil
}
