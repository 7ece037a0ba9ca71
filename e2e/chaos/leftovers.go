package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// prefix is that of errand's keys.
const prefix = "errand:"

// mustBeEmpty are the beginnings of keys that must not be there when all is done: each holds something of a task that has not ended, or
// that has not been told. store/keys.go says what they are.
var mustBeEmpty = []string{"live", "outbox", "claim:", "waiting:", "absorbed:", "cap:"}

// leftovers are what is left in Redis of what should be over.
func leftovers(ctx context.Context, client redis.UniversalClient) ([]string, error) {
	var left []string
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		name := strings.TrimPrefix(key, prefix)
		for _, begin := range mustBeEmpty {
			if name == begin || strings.HasSuffix(begin, ":") && strings.HasPrefix(name, begin) {
				left = append(left, key)
			}
		}
		if strings.HasPrefix(name, "spend:") {
			reserved, err := reservations(ctx, client, key)
			if err != nil {
				return nil, err
			}
			left = append(left, reserved...)
		}
	}
	if err := keys.Err(); err != nil {
		return nil, fmt.Errorf("look for leftovers in redis: %w", err)
	}
	return left, nil
}

// reservations are those of a budget that were not settled.
func reservations(ctx context.Context, client redis.UniversalClient, key string) ([]string, error) {
	kind, err := client.Type(ctx, key).Result()
	if err != nil || kind != "hash" {
		return nil, err
	}
	fields, err := client.HKeys(ctx, key).Result()
	if err != nil {
		return nil, fmt.Errorf("look for leftovers in redis: %w", err)
	}
	var left []string
	for _, f := range fields {
		if strings.HasPrefix(f, "r:") {
			left = append(left, key+" "+f)
		}
	}
	return left, nil
}
