package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/fake/redissentinel"
	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/internal/redisserver"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// database is the Redis of the fleet. One fault at a time is injected.
type database interface {
	// urls returns the addresses for the last worker and for the others.
	urls() (far, others string)
	// client returns a client that no fault cuts off.
	client() *redis.Client
	// fault injects a fault and returns when it has ended, and when a Redis was there again.
	fault(ctx context.Context, k kind, lasts time.Duration) (back time.Time, err error)
	// forgot returns when acknowledged writes may have been lost.
	forgot() []window
	// cutOff cuts the last worker off for a while.
	cutOff(ctx context.Context, lasts time.Duration) error
	// setClock sets Redis' clock to the true time plus this.
	setClock(ahead time.Duration) error
	stop()
}

// single is a redis-server that loses no acknowledged write, behind links with fixed addresses.
type single struct {
	cfg       redisserver.Config
	clock     *redisclock.Clock
	near, far *link
	server    *redisserver.Server
}

// newSingle starts a server. With an error it also returns what it has started.
func newSingle(dir string) (d *single, err error) {
	path, ok := redistest.Find()
	if !ok {
		return nil,
			errors.New("start redis: there is no redis-server: run make setup (or apt-get install redis-server)")
	}
	d = &single{cfg: redisserver.Config{Path: path, Dir: dir, Password: rand.Text(), AppendOnly: true, Fsync: "always"}}
	if d.clock, err = redisclock.New(dir); err != nil {
		return d, err
	}
	d.cfg.Env = d.clock.Env()
	if d.near, err = newLink(); err != nil {
		return d, err
	}
	if d.far, err = newLink(); err != nil {
		return d, err
	}
	return d, d.start()
}

// start starts a server on a free port and points the links to it.
func (d *single) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := redisserver.Start(ctx, d.cfg)
	if err != nil {
		return err
	}
	d.server = s
	d.near.aim(s.Addr())
	d.far.aim(s.Addr())
	return nil
}

func (d *single) urls() (far, others string) { return d.url(d.far), d.url(d.near) }

func (d *single) url(l *link) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", d.cfg.Password), Host: l.addr(), Path: "/0"}
	return u.String()
}

func (d *single) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: d.near.addr(), Password: d.cfg.Password})
}

func (d *single) forgot() []window { return nil }

func (d *single) fault(ctx context.Context, k kind, lasts time.Duration) (back time.Time, err error) {
	switch k {
	case freezeRedis:
		err = d.freeze(ctx, lasts)
	case fullRedis:
		err = d.set(ctx, "maxmemory", "1", lasts)
	case lockedRedis:
		err = d.set(ctx, "min-replicas-to-write", "1", lasts)
	default:
		err = d.restart(ctx, k == killRedis, lasts)
	}
	return time.Now(), err
}

// set changes a setting from 0, with which Redis refuses writes, for a while.
func (d *single) set(ctx context.Context, setting, value string, lasts time.Duration) error {
	client := d.client()
	defer client.Close()
	if err := client.ConfigSet(ctx, setting, value).Err(); err != nil {
		return fmt.Errorf("set %s: %w", setting, err)
	}
	pause(ctx, lasts)
	return client.ConfigSet(context.WithoutCancel(ctx), setting, "0").Err()
}

// restart ends the server, with KILL or cleanly, and starts it again after a while with all acknowledged data.
func (d *single) restart(ctx context.Context, kill bool, after time.Duration) error {
	if kill {
		// a child that is not reaped yet, so its PID is not reused
		if err := syscall.Kill(d.server.Pid(), syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill redis: %w", err)
		}
	}
	if err := d.end(); err != nil {
		return err
	}
	pause(ctx, after)
	return d.start()
}

// freeze stops the server process for a while. Its port still accepts connections.
func (d *single) freeze(ctx context.Context, lasts time.Duration) error {
	pid := d.server.Pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze redis: %w", err)
	}
	pause(ctx, lasts)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("thaw redis: %w", err)
	}
	return nil
}

func (d *single) cutOff(ctx context.Context, lasts time.Duration) error {
	d.far.cut()
	pause(ctx, lasts)
	d.far.repair()
	return nil
}

func (d *single) setClock(ahead time.Duration) error { return d.clock.Set(ahead) }

func (d *single) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return d.server.Stop(ctx)
}

func (d *single) stop() {
	if d.server != nil {
		_ = d.end()
	}
	for _, l := range []*link{d.near, d.far} {
		if l != nil {
			l.close()
		}
	}
}

// replicated is a master with a replica and Sentinels. Each fault of it is a fail-over.
type replicated struct{ *redissentinel.Redis }

func (d replicated) urls() (far, others string) { return d.URL(), d.URL() }

func (d replicated) client() *redis.Client { return d.Client() }

// fault makes the replica the new master: after the old one was killed, or while it is frozen. A killed one may have
// had writes that the replica had not, for up to a second.
func (d replicated) fault(ctx context.Context, k kind, lasts time.Duration) (back time.Time, err error) {
	switch k {
	case freezeRedis:
		err = d.Freeze(ctx, min(lasts, 5*time.Second))
	case killRedis:
		err = d.Kill(ctx, min(lasts, time.Second))
	default:
		err = d.Kill(ctx, 0)
	}
	back = time.Now()
	return back, errors.Join(err, d.Restore(ctx))
}

// forgot returns the time around each change of the master: Sentinel needs three seconds for one, and before a kill the
// replica may lag for one more.
func (d replicated) forgot() (all []window) {
	for _, at := range d.Switches() {
		all = append(all, window{at.Add(-5 * time.Second), at.Add(time.Second)})
	}
	return all
}

func (d replicated) cutOff(context.Context, time.Duration) error {
	return errors.New("only the single Redis has a link to cut")
}

func (d replicated) setClock(time.Duration) error {
	return errors.New("only the single Redis has its own clock")
}

func (d replicated) stop() { d.Stop() }

// pause sleeps and returns early if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
