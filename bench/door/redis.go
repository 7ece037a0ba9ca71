package door

import (
	"context"
	"errors"
	"fmt"

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
