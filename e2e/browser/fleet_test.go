package browser

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/redis/go-redis/v9"
)

// An operator pauses a class and cordons a worker by buttons; the page, which is live, says who did it.
func TestFleet(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for i, running := range []int{3, 1} {
		id := fmt.Sprintf("mill-%d", i+1)
		c.alive(store.Worker{
			ID: id, Host: id + ".acme.example", Version: "v1.4.0", Pid: 7, Slots: 4, Running: running, Memory: 11 << 29,
			Started: time.Now().Add(-26 * time.Hour),
		}, cli)
	}
	c.alive(store.Worker{
		ID: "mill-3", Host: "mill-3.acme.example", Version: "v1.4.0", Pid: 7, Pool: "gpu", Slots: 2,
		Started: time.Now().Add(-time.Hour),
	}, cli)
	waits := c.submit(func(t *tasks.Task) { t.Repo, t.Thread = "acme/firmware", "chat/arm" })
	for n, class := range []string{tasks.Review, tasks.Review, tasks.Interactive} {
		c.submit(func(t *tasks.Task) {
			t.Class, t.Repo, t.Thread, t.Prompt = class, "acme/web", fmt.Sprint("chat/", n),
				"Load fonts from our own domain, and say which pages get faster"
		})
	}
	c.redis(func(ctx context.Context, r *redis.Client) error { // a day of endings and waiting times
		if err := r.HSet(ctx, "errand:task:"+waits, "pool", "arm").Err(); err != nil {
			return err
		}
		now := time.Now().UTC()
		for i := range 24 {
			at := now.Add(time.Duration(-i) * time.Hour)
			key := fmt.Sprintf("errand:tally:%d", at.Unix()/86400)
			for what, n := range map[string]int{
				"ended answered": 14 * i % 23, "ended failed": i * i % 4, "ended cancelled": i % 3,
				"waited review 6": 3, "waited interactive 0": 20, "waited interactive 3": 1,
			} {
				if err := r.HSet(ctx, key, fmt.Sprint(at.Hour(), " ", what), n).Err(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	tb := c.tab(t)
	tb.open("/fleet")
	tb.find("main", "mill-2.acme.example")
	tb.find("main", "no worker of pool arm is running")
	tb.press("#halt-review")
	tb.find("main", "paused review tasks")
	tb.press("#halt-mill-1")
	tb.find("main", "cordoned it")
	tb.check()
	for _, l := range looks {
		tb := c.tab(t)
		tb.as(l)
		tb.open("/fleet")
		tb.find("main", "Ended tasks by hour")
		tb.fits("fleet-busy")
		tb.accessible("fleet-busy")
		tb.keep(fmt.Sprintf("%s/fleet-busy-%s.png", out, l.name), tb.shoot(true))
		tb.check()
	}
}
