package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/redisserver"
)

// database is a redis-server that loses no acknowledged write, behind links with fixed addresses.
type database struct {
	cfg   redisserver.Config
	links []*link

	breaking sync.Mutex // held while a fault is active: one at a time
	server   *redisserver.Server
}

func newDatabase(dir string, links ...*link) (*database, error) {
	path, ok := redisserver.Find()
	if !ok {
		return nil, errors.New("start redis: there is no redis-server: run make setup (or apt-get install redis-server)")
	}
	d := &database{
		cfg:   redisserver.Config{Path: path, Dir: dir, Password: rand.Text(), AppendOnly: true, Fsync: "always"},
		links: links,
	}
	return d, d.start()
}

// start starts a server on a free port and points the links to it.
func (d *database) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := redisserver.Start(ctx, d.cfg)
	if err != nil {
		return err
	}
	d.server = s
	u, err := url.Parse(s.URL())
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	for _, l := range d.links {
		l.aim(u.Host)
	}
	return nil
}

// url is its address through a link.
func (d *database) url(l *link) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", d.cfg.Password), Host: l.addr(), Path: "/0"}
	return u.String()
}

// restart ends the server, with KILL or cleanly, and starts it again after a while with all acknowledged data.
func (d *database) restart(ctx context.Context, kill bool, after time.Duration) error {
	if kill {
		if err := syscall.Kill(d.server.Pid(), syscall.SIGKILL); err != nil { // a child that is not reaped yet, so its PID is not reused
			return fmt.Errorf("kill redis: %w", err)
		}
	}
	if err := d.stop(); err != nil {
		return err
	}
	pause(ctx, after)
	return d.start()
}

// freeze stops the server process for a while. Its port still accepts connections.
func (d *database) freeze(ctx context.Context, lasts time.Duration) error {
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

func (d *database) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return d.server.Stop(ctx)
}

// pause sleeps and returns early if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
