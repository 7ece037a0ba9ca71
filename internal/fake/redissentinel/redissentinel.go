// Package redissentinel runs a Redis that fails over: a master, a replica and three Sentinels, as Debian packages them.
// It is for tests and needs redis-server, which also is the Sentinel.
package redissentinel

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// name is the master's name at the Sentinels.
const name = "errand"

// patience bounds each step: Sentinels notice a dead master after 1.5 s, but then try again only after ten.
const patience = 40 * time.Second

// Redis is a replicated Redis. Its methods are for one goroutine at a time, except URL.
type Redis struct {
	path, dir                string
	secure                   bool                           // TLS and users
	rights, guardRights      []string                       // of the user for clients
	tls                      map[*redisserver.Server]string // addresses
	guardsTLS                []string
	password, guardsPassword string
	servers                  []*redisserver.Server // all that run
	guards                   []*exec.Cmd           // the Sentinels
	addrs                    []string              // of the Sentinels

	mu       sync.Mutex
	switches []time.Time
	heard    *redis.PubSub
}

// Start starts everything below dir, and returns when the replica is in sync and the Sentinels know each other. The
// caller calls Stop, also after an error.
func Start(ctx context.Context, dir string) (*Redis, error) {
	return startAll(ctx, &Redis{dir: dir, password: rand.Text(), guardsPassword: rand.Text()})
}

func startAll(ctx context.Context, r *Redis) (*Redis, error) {
	var ok bool
	if r.path, ok = redistest.Find(); !ok {
		return r, errors.New("start redis: there is no redis-server: run make setup (or apt-get install redis-server)")
	}
	if r.secure {
		r.tls = map[*redisserver.Server]string{}
		if err := WriteCertificates(r.dir, time.Now().Add(time.Hour)); err != nil {
			return r, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	master, err := r.add(ctx)
	if err != nil {
		return r, err
	}
	if err := r.addReplica(ctx, master); err != nil { // before the Sentinels, which look for replicas every ten seconds
		return r, err
	}
	for i := range 3 {
		if err := r.guard(ctx, i, r.addr(master)); err != nil {
			return r, err
		}
	}
	if err := r.Restore(ctx); err != nil {
		return r, err
	}
	r.heard = r.sentinel(r.addrs[0]).Subscribe(ctx, "+switch-master")
	go func() {
		for range r.heard.Channel() {
			r.mu.Lock()
			r.switches = append(r.switches, time.Now())
			r.mu.Unlock()
		}
	}()
	return r, r.until(ctx, "the Sentinels do not know each other", func() error {
		for _, a := range r.addrs {
			guard := r.sentinel(a)
			err := guard.CkQuorum(ctx, name).Err()
			_ = guard.Close()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// URL returns the address of the master through the Sentinels, as errand's REDIS_URL.
func (r *Redis) URL() string {
	if r.secure {
		return r.secureURL()
	}
	query := url.Values{"master": {name}, "sentinel_password": {r.guardsPassword}}
	return fmt.Sprintf("redis+sentinel://:%s@%s/0?%s", r.password, strings.Join(r.addrs, ","), query.Encode())
}

// Client returns a client that follows the master. The caller closes it.
func (r *Redis) Client() *redis.Client {
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: name, SentinelAddrs: r.addrs, SentinelPassword: r.guardsPassword, Password: r.password,
	})
}

// Switches returns when the Sentinels have changed the master, also without a fault: on a machine that is so busy that
// the master did not answer in time.
func (r *Redis) Switches() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.switches)
}

// Kill kills the master and returns when the replica has taken over. If lag is set, the replica first gets no more
// writes for so long, which are then lost.
func (r *Redis) Kill(ctx context.Context, lag time.Duration) error {
	master, err := r.master(ctx)
	if err != nil {
		return err
	}
	if lag > 0 {
		if err := r.lag(ctx, master, lag); err != nil {
			return err
		}
	}
	// a child that is not reaped yet, so its PID is not reused
	if err := syscall.Kill(master.Pid(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill master: %w", err)
	}
	if err := r.remove(ctx, master); err != nil {
		return err
	}
	return r.promoted(ctx, master)
}

// Freeze stops the master's process until the replica has taken over and then for so long. It returns when the old
// master is a replica.
func (r *Redis) Freeze(ctx context.Context, lasts time.Duration) error {
	master, err := r.master(ctx)
	if err != nil {
		return err
	}
	if err := syscall.Kill(master.Pid(), syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze master: %w", err)
	}
	err = r.promoted(ctx, master)
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
	if thaw := syscall.Kill(master.Pid(), syscall.SIGCONT); thaw != nil {
		err = errors.Join(err, fmt.Errorf("thaw master: %w", thaw))
	}
	if err != nil {
		return err
	}
	return r.Restore(ctx)
}

// Restore starts a replica if none exists, and returns when it is in sync.
func (r *Redis) Restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	master, err := r.master(ctx)
	if err != nil {
		return err
	}
	if len(r.servers) < 2 {
		if err := r.addReplica(ctx, master); err != nil {
			return err
		}
	}
	if err := r.until(ctx, "the replica is not in sync", func() error {
		for _, s := range r.servers {
			c := r.client(s)
			info, err := c.Info(ctx, "replication").Result()
			_ = c.Close()
			if err != nil || s != master && !strings.Contains(info, "master_link_status:up") ||
				s == master && !strings.Contains(info, "role:master") {
				return cmp.Or(err, errors.New(info))
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return r.until(ctx, "a Sentinel does not know the replica", func() error {
		for _, s := range r.servers {
			if s != master {
				return r.known(ctx, r.addr(s))
			}
		}
		return nil
	})
}

// known returns an error if a Sentinel would not promote a replica.
func (r *Redis) known(ctx context.Context, replica string) error {
	for _, a := range r.addrs {
		guard := r.sentinel(a)
		list, err := guard.Replicas(ctx, name).Result()
		_ = guard.Close()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(known map[string]string) bool {
			return known["name"] == replica && known["flags"] == "slave"
		}) {
			return fmt.Errorf("%s knows %v", a, list)
		}
	}
	return nil
}

// Stop ends all processes.
func (r *Redis) Stop() {
	if r.heard != nil {
		_ = r.heard.Close()
	}
	for _, g := range r.guards {
		_ = g.Process.Kill()
		_ = g.Wait()
	}
	at, cancel := context.WithCancel(context.Background())
	cancel()
	for _, s := range r.servers {
		_ = s.Stop(at) // kills it
	}
}

// add starts a server that can become a replica of any other.
func (r *Redis) add(ctx context.Context) (*redisserver.Server, error) {
	dir, err := os.MkdirTemp(r.dir, "redis-")
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	s, err := redisserver.Start(ctx, redisserver.Config{Path: r.path, Dir: dir, Password: r.password, AppendOnly: true})
	if err != nil {
		return nil, err
	}
	r.servers = append(r.servers, s)
	for _, setting := range [][2]string{{"masterauth", r.password}, {"repl-diskless-sync-delay", "0"}} {
		if err := r.do(ctx, s, "CONFIG", "SET", setting[0], setting[1]); err != nil {
			return nil, err
		}
	}
	if r.secure {
		return s, r.protect(ctx, s)
	}
	return s, nil
}

func (r *Redis) addReplica(ctx context.Context, master *redisserver.Server) error {
	replica, err := r.add(ctx)
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(r.addr(master))
	return r.do(ctx, replica, "REPLICAOF", host, port)
}

func (r *Redis) remove(ctx context.Context, s *redisserver.Server) error {
	for i, other := range r.servers {
		if other == s {
			r.servers = append(r.servers[:i:i], r.servers[i+1:]...)
			break
		}
	}
	return s.Stop(ctx)
}

// guard starts a Sentinel.
func (r *Redis) guard(ctx context.Context, i int, master string) error {
	port, err := redisserver.FreePort(ctx)
	if err != nil {
		return err
	}
	own := fmt.Sprintf("127.0.0.1:%d", port)
	host, masterPort, _ := net.SplitHostPort(master)
	file := filepath.Join(r.dir, fmt.Sprintf("sentinel-%d.conf", i)) // which it also writes
	config := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %q
logfile "sentinel.log"
requirepass %s
sentinel sentinel-pass %[3]s
sentinel monitor %[4]s %[5]s %[6]s 2
sentinel auth-pass %[4]s %[7]s
sentinel down-after-milliseconds %[4]s 1500
sentinel failover-timeout %[4]s 5000
`, port, r.dir, r.guardsPassword, name, host, masterPort, r.password)
	if r.secure {
		addr, more, err := r.listenTLS(ctx)
		if err != nil {
			return err
		}
		r.guardsTLS, config = append(r.guardsTLS, addr), config+more
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return fmt.Errorf("start Sentinel: %w", err)
	}
	cmd := exec.Command(r.path, file, "--sentinel")
	cmd.Env = []string{}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start Sentinel: %w", err)
	}
	r.guards, r.addrs = append(r.guards, cmd), append(r.addrs, own)
	return r.until(ctx, "a Sentinel does not answer", func() error {
		guard := r.sentinel(own)
		defer guard.Close()
		return guard.Ping(ctx).Err()
	})
}

// lag lets the replica of a master miss its writes for a while: it cannot log in again.
func (r *Redis) lag(ctx context.Context, master *redisserver.Server, lasts time.Duration) error {
	var replica *redisserver.Server
	for _, s := range r.servers {
		if s != master {
			replica = s
		}
	}
	if replica == nil {
		return errors.New("there is no replica")
	}
	if err := r.do(ctx, replica, "CONFIG", "SET", "masterauth", "wrong"); err != nil {
		return err
	}
	if err := r.do(ctx, replica, "CLIENT", "KILL", "TYPE", "master"); err != nil {
		return err
	}
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
	return r.do(ctx, replica, "CONFIG", "SET", "masterauth", r.password)
}

// master returns the server that most Sentinels hold for the master.
func (r *Redis) master(ctx context.Context) (*redisserver.Server, error) {
	votes := map[string]int{}
	for _, a := range r.addrs {
		guard := r.sentinel(a)
		if found, err := guard.GetMasterAddrByName(ctx, name).Result(); err == nil {
			votes[net.JoinHostPort(found[0], found[1])]++
		}
		_ = guard.Close()
	}
	for _, s := range r.servers {
		if votes[r.addr(s)] > len(r.addrs)/2 {
			return s, nil
		}
	}
	return nil, fmt.Errorf("find master: the Sentinels say %v", votes)
}

// promoted waits until another server than old is the master and accepts writes.
func (r *Redis) promoted(ctx context.Context, old *redisserver.Server) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return r.until(ctx, "no replica takes over", func() error {
		master, err := r.master(ctx)
		switch {
		case err != nil:
			return err
		case master == old:
			return errors.New("it is still the master")
		default:
			return r.do(ctx, master, "SET", "redissentinel", "1", "PX", "1000")
		}
	})
}

// until tries something until it succeeds or ctx ends.
func (r *Redis) until(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

func (r *Redis) do(ctx context.Context, s *redisserver.Server, command ...any) error {
	c := r.client(s)
	defer c.Close()
	if err := c.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("%v: %w", command[0], err)
	}
	return nil
}

func (r *Redis) client(s *redisserver.Server) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr(), Password: r.password, MaxRetries: -1})
}

func (r *Redis) sentinel(addr string) *redis.SentinelClient {
	return redis.NewSentinelClient(&redis.Options{Addr: addr, Password: r.guardsPassword, MaxRetries: -1})
}
