package redisclock

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The clock of a running server jumps, and keys expire by it. The server's own timers use the monotonic clock and do
// not notice: with a jump back they would not fire for an hour.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	url, clock := ForTest(t)
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c, ctx := redis.NewClient(opt), t.Context()
	defer c.Close()
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		if err := c.Set(ctx, "key", 1, time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		before := c.PTTL(ctx, "key").Val()
		if err := clock.Set(ahead); err != nil {
			t.Fatal(err)
		}
		now, err := c.Time(ctx).Result()
		if off := time.Until(now) - ahead; err != nil || off.Abs() > time.Minute {
			t.Errorf("%s ahead: Redis' clock is %s off, %v", ahead, off, err)
		}
		t.Logf("%s ahead: the key with %s lives for %s", ahead, before, c.PTTL(ctx, "key").Val())
		if exists := c.Exists(ctx, "key").Val() == 1; ahead == time.Hour && exists {
			t.Error("a key outlives the jump")
		}
	}
	if err := errors.Join(clock.Set(-time.Hour), c.FlushAll(ctx).Err(),
		c.Set(ctx, "key", 1, 50*time.Millisecond).Err()); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); c.DBSize(ctx).Val() > 0; { // a timer removes it, because nothing reads it
		if time.Since(begun) > 2*time.Minute {
			t.Fatal("the server's timers do not fire after a jump back")
		}
	}
}
