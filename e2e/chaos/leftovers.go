package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// prefix is that of errand's keys.
const prefix = "errand:"

// mustBeEmpty are the prefixes of keys that must not exist at the end: they belong to tasks that have not ended or
// whose final message is not posted. store/keys.go describes them.
var mustBeEmpty = []string{"live", "outbox", "claim:", "waiting:", "absorbed:", "cap:"}

// leftovers returns what Redis still holds of ended tasks.
func leftovers(ctx context.Context, client redis.UniversalClient) ([]string, error) {
	var left []string
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		name := strings.TrimPrefix(key, prefix)
		if strings.HasPrefix(name, "claim:") {
			bounded, err := outOfTime(ctx, client, key)
			if err != nil {
				return nil, err
			}
			if bounded {
				continue
			}
		}
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

// longestClaim is more than the life that any claim or lock of a thread is given.
const longestClaim = 15 * time.Minute

// outOfTime reports whether a claim was set before Redis' clock went back, which makes its life longer. Its holder may
// have been unable to release it. The next task of the thread bounds it: see TestDeadHolderAfterAJump in package store.
func outOfTime(ctx context.Context, client redis.UniversalClient, key string) (bool, error) {
	life, err := client.PTTL(ctx, key).Result()
	if err != nil {
		return false, fmt.Errorf("look for leftovers in redis: %w", err)
	}
	return life > longestClaim, nil
}

// reservations returns the unsettled reservations of a budget.
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
