package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

func TestLeftoversAreFound(t *testing.T) {
	t.Parallel()
	opt, err := redis.ParseURL(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := redis.NewClient(opt), t.Context()
	defer c.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"errand:fence", "errand:workers-claim:x", "other:claim:t"} { // what may stay
		must(c.Set(ctx, key, "1", 0).Err())
	}
	must(c.HSet(ctx, "errand:task:1", "state", "ended").Err())
	must(c.HSet(ctx, "errand:spend:20779:user:U1", "spent", "5").Err())
	must(c.Set(ctx, "errand:claim:set/before/a/jump/back", "1 id n", time.Hour).Err())
	left, err := leftovers(ctx, c)
	must(err)
	if left != nil {
		t.Errorf("of a fleet at rest: %q", left)
	}
	for key, add := range map[string]func(string) error{
		"errand:claim:slack/T1":  func(k string) error { return c.Set(ctx, k, "1 id n", 0).Err() },
		"errand:claim:slack/T2":  func(k string) error { return c.Set(ctx, k, "1 id n", 15*time.Second).Err() },
		"errand:waiting:chat/x":  func(k string) error { return c.ZAdd(ctx, k, redis.Z{Member: "id"}).Err() },
		"errand:live":            func(k string) error { return c.ZAdd(ctx, k, redis.Z{Member: "id"}).Err() },
		"errand:outbox":          func(k string) error { return c.ZAdd(ctx, k, redis.Z{Member: "id"}).Err() },
		"errand:absorbed:id":     func(k string) error { return c.ZAdd(ctx, k, redis.Z{Member: "id"}).Err() },
		"errand:cap:repo:acme/x": func(k string) error { return c.ZAdd(ctx, k, redis.Z{Member: "id"}).Err() },
	} {
		must(add(key))
		left, err := leftovers(ctx, c)
		must(err)
		if diff := cmp.Diff([]string{key}, left); diff != "" {
			t.Error(diff)
		}
		must(c.Del(ctx, key).Err())
	}
	must(c.HSet(ctx, "errand:spend:20779:user:U1", "r:id", "5").Err())
	left, err = leftovers(ctx, c)
	must(err)
	if diff := cmp.Diff([]string{"errand:spend:20779:user:U1 r:id"}, left); diff != "" {
		t.Error(diff)
	}
}
