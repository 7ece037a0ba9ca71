package assemble

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
)

// client returns a Redis client for a front door that answers within 3 s and for claims that are renewed every 5 s: it
// notices in time that Redis hangs.
func (p *Parts) client() (*redis.Client, error) {
	a, err := p.Config.Redis.Address()
	if err != nil {
		return nil, errors.New("parse REDIS_URL: it is not of the form redis://:password@host:6379/0") // err quotes it
	}
	const patience, retries, idle = 2 * time.Second, 1, 3 // idle connections: a fleet has hundreds of processes
	var c *redis.Client
	if a.Master != "" {
		c = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: a.Master, SentinelAddrs: a.Servers, SentinelUsername: a.SentinelUser,
			SentinelPassword: a.SentinelPassword.Reveal(), Username: a.User, Password: a.Password.Reveal(),
			DB: a.Database, TLSConfig: a.TLS, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
			ContextTimeoutEnabled: true, MaxRetries: retries, MaxIdleConns: idle,
			DialerRetries: 1, // of each Sentinel and, within that, of each dial to Redis
		})
	} else {
		c = redis.NewClient(&redis.Options{
			Network: a.Network, Addr: a.Servers[0], Username: a.User, Password: a.Password.Reveal(), DB: a.Database,
			TLSConfig: a.TLS, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
			ContextTimeoutEnabled: true, MaxRetries: retries, MaxIdleConns: idle,
		})
	}
	c.AddHook(&p.connections)
	c.Options().Limiter = &p.connections
	return c, nil
}

// connections is a go-redis hook and limiter that notes outages and leaves a Redis which has become a replica. A hosted
// Redis keeps its address in a fail-over, but old connections may stay with the old master, which then refuses writes,
// answers reads with old data and is silent to subscribers. go-redis closes only the connection that a write was
// refused on.
type connections struct {
	outage *outage

	mu   sync.Mutex
	open map[net.Conn]time.Time // when it was made; also closed ones, until the next
}

// settles is how old a connection must be to be closed. While the address still leads to the old master, every write is
// refused.
const settles = time.Second

// DialHook implements [redis.Hook].
func (l *connections) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		if err == nil {
			l.add(c)
		} else if !errors.Is(err, context.Canceled) {
			l.outage.failed(err)
		}
		return c, err
	}
}

// ProcessHook implements [redis.Hook]. ReportResult sees the errors that go-redis hides by a second attempt.
func (l *connections) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		late := ctx.Err() != nil
		err := next(ctx, cmd)
		l.outage.completed(err, late)
		return err
	}
}

// Allow implements [redis.Limiter].
func (l *connections) Allow() error { return nil }

// ReportResult implements [redis.Limiter]. It gets the result of each attempt; of a pipeline, of the first command.
func (l *connections) ReportResult(err error) {
	l.outage.replied(err)
	if redis.IsReadOnlyError(err) {
		l.leave()
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (l *connections) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		late := ctx.Err() != nil
		err := next(ctx, cmds)
		l.outage.completed(err, late)
		for _, cmd := range cmds {
			if redis.IsReadOnlyError(cmd.Err()) {
				l.leave()
				break
			}
		}
		return err
	}
}

func (l *connections) add(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.open, func(other net.Conn, _ time.Time) bool { return isClosed(other) })
	if l.open == nil {
		l.open = map[net.Conn]time.Time{}
	}
	l.open[c] = time.Now()
}

// leave closes the connections. Their users connect again, to where the address leads now.
func (l *connections) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, since := range l.open {
		if time.Since(since) >= settles {
			_ = c.Close() // already closed, or of no more use
			delete(l.open, c)
		}
	}
}

// isClosed reports whether this process has closed a connection.
func isClosed(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}

// explain returns what is wrong if Redis cannot be used, without its own words, which may have addresses and data: what
// is public. The remedy is for operators.
func (p *Parts) explain(err error) (what, remedy string) {
	is := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(err.Error(), part) })
	}
	address, _ := p.Config.Redis.Address() // p.client has reported an error
	sentinels := address.Master != ""
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	invalid, _ := errors.AsType[x509.CertificateInvalidError](err)
	if why, remedy := store.Unwritable(err); remedy != "" {
		return "Redis refuses writes: " + why, remedy
	}
	switch {
	case is("EXECABORT "):
		return "Redis refuses writes", "Ask /readyz of a front door for the reason: memory, disk or replicas."
	case invalid.Reason == x509.Expired && invalid.Cert != nil || is("certificate has expired or is not yet valid"):
		return "Redis' certificate has expired", "Renew it, or correct the clock of this machine."
	case is("MOVED ", "CLUSTERDOWN ", "CROSSSLOT "): // a part of it may work, and MOVED has an address
		return "Redis is a cluster", "Run a single Redis, with replicas if need be."
	case is("LOADING "):
		return "Redis is loading its data", "Wait."
	case unknown || is("certificate signed by unknown authority"):
		return "Redis' certificate is of an unknown authority",
			"Set ERRAND_REDIS_CA_FILE to the certificate of the CA that signed it."
	case other || is("x509: certificate is valid for", "x509: certificate is not valid for",
		"x509: cannot validate certificate for"):
		return "Redis' certificate is for another host",
			"Use a host in REDIS_URL that the certificate names; with Sentinels, it must name the " +
				"addresses that they report."
	case is("tls: certificate required", "tls: bad certificate", "tls: unknown certificate",
		"tls: expired certificate"):
		return "Redis refuses the client certificate",
			"Set ERRAND_REDIS_CERT_FILE and ERRAND_REDIS_KEY_FILE to a certificate that it accepts."
	case is("tls: first record does not look like a TLS handshake"):
		return "Redis uses no TLS", "Write redis:// instead of rediss:// in REDIS_URL."
	case is("WRONGPASS", "NOAUTH", "invalid password", "without any password configured"):
		if sentinels && is("sentinel") {
			return "the Sentinels refuse the user or password",
				"Correct sentinel_user and sentinel_password in REDIS_URL."
		}
		return "Redis refuses the user or password", "Correct the user and password in REDIS_URL."
	case is("NOPERM") && sentinels:
		return "the Sentinels refuse a command", "Give their user the rights in docs/redis.md."
	case sentinels && is("redis: nil"):
		return "the Sentinels do not know the master", "Correct master in REDIS_URL."
	}
	if said, reply := errors.AsType[redis.Error](err); reply {
		return "Redis refuses requests",
			"Correct what it names, such as the database in REDIS_URL: " + p.Redactor.String(said.Error())
	}
	return "Redis does not answer", "Check that Redis runs and that REDIS_URL is right: rediss:// only if it uses TLS."
}

// Ready returns an error if the process cannot work. The error is public: it contains no address.
func (p *Parts) Ready(ctx context.Context) error {
	findings, err := p.Store.Doctor.Diagnose(ctx)
	if err != nil {
		what, _ := p.explain(err)
		return errors.New(what)
	}
	for _, f := range findings {
		if f.Severity == store.Fatal {
			return errors.New(f.What)
		}
	}
	return nil
}

// awaitRedis waits until Redis has answered once, and returns an error if Redis must not be used. It returns nil when
// ctx ends.
func (p *Parts) awaitRedis(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !p.redisChecked {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := p.checkRedis(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkRedis logs the findings about Redis. It returns why Redis did not answer, or why it must not be used.
func (p *Parts) checkRedis(ctx context.Context) (unreachable, refused error) {
	ctx, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	findings, err := p.Store.Doctor.Diagnose(ctx)
	if err != nil {
		return err, nil
	}
	p.redisChecked = true
	p.logFindings(ctx, "redis", findings)
	for _, f := range findings {
		if f.Severity == store.Fatal && f.What == store.OpenRedis || f.Evicts() {
			return nil, fmt.Errorf("start: %s. %s %s", f.What, f.Why, f.Remedy)
		}
	}
	return nil, p.checkFleet(ctx)
}

// redisLog sends the Redis library's messages to the log.
type redisLog struct{ log *slog.Logger }

// Printf logs one line.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, "redis", "what", strings.TrimPrefix(fmt.Sprintf(format, v...), "redis: "),
		"remedy", "if this continues, check that Redis runs and that REDIS_URL is right")
}
