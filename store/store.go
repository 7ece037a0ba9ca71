// Package store keeps everything that outlives a process in Redis: tasks, claims, sessions, checkpoints, events, the
// outbox.
//
// It promises:
//   - Every step that changes more than one key is one Lua script, and so atomic.
//   - A thread has at most one holder. A [Claim] expires unless [Claim.Keep] runs, and has a fencing token, a number
//     that only grows. Every write of a holder is checked against it; a replaced holder gets [ErrStale] and changes
//     nothing.
//   - A task has one ending, the first, until [Store.Retry].
//   - Absorbed tasks end with their run or wait again, in the step that ends the run.
//   - The cost of a run counts once, in budgets and in the costs of its day, in one step.
//   - A checkpoint is read exactly as it was saved or not at all, and does not outlive its task.
//   - Steps are idempotent if a lost reply makes go-redis send them again. But [Claim.Append] may then store an event
//     twice, [Credentials.Admit] and [Memos.Allow] use a turn for nothing, [Credentials.Ease] eases twice,
//     [Outbox.Take] without an ID leaves a task to its lease, and [ThreadLock.Release] finds nothing to release.
//   - Leases, fences and waiting times between processes use Redis' clock. If it jumps, they last for at most a minute
//     longer, and no thread gets a second holder. Only the times of retries, and until when a credential is held, are
//     by the clocks of workers.
//   - A follower of a task gets its events in order, each once, regardless of slower followers.
//   - Tasks that have ended and were posted expire with everything that belongs to them.
//   - If Redis loses its data, the next step of a holder restores its running task.
//   - An unreadable record is reported and does not affect others.
//
// It promises nothing else if Redis loses data: run Redis with an append-only file and maxmemory-policy noeviction. If
// a replica without the last writes takes over, the lost steps can be repeated: a holder whose claim is lost restores
// it, and no later claim has its fence.
// The store does not interpret tasks, endings, events and sessions. Package tasks decides when to retry, requeue or
// give up. Redis Cluster and Ring are refused, because scripts span the keys of a thread.
//
// Redis must be 6.2 or newer; miniredis works, too. keys.go documents every key. All methods are safe for concurrent
// use. A context is checked between round trips; within one, the client's timeouts apply (2 s and one retry suit the
// renewal of claims every 5 s).
//
// Errors name the step and its object, and wrap an error of scripts.go if callers have to distinguish it.
package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store/objects"
)

// Config configures a store. Redis is required. A zero duration or number means the default in brackets.
type Config struct {
	Redis    Client         // not closed by the store; Cluster and Ring are refused
	Blocking Client         // for subscriptions, separate from the others; nil = Redis
	Prefix   string         // of every key ["errand:"]
	Objects  objects.Bucket // for values that are too large for Redis; nil: all are in Redis

	// how many replicas of Redis must have an accepted task, an answer, an ending before the step is done [0]
	Replicas  int
	Sentinels bool // Sentinels say which Redis is the master, so that replicas take over
	AllowOpen bool // a Redis without a password is a warning, not an error

	ClaimTTL  time.Duration // a claim expires this long after its last renewal [15 s]
	Refresh   time.Duration // how often Keep renews a claim, well below ClaimTTL [5 s]
	Outage    time.Duration // how long a holder trusts its claim while Redis does not answer [60 s]
	Retention time.Duration // how long a posted task and its events stay readable [7 days]
	// of a session and a checkpoint since the last save, and of an alias since its last use [30 days]
	SessionTTL time.Duration
	EventCap   int // newest events kept per task [5000]
	AuditCap   int // newest entries kept of the audit log [20000]
	CostCap    int // how many combinations of scopes and model the costs of a day distinguish [2000]
}

// Store holds the tasks. Its fields hold everything else and share its connection. All methods are safe for concurrent
// use. A store starts a goroutine only while tasks are followed.
type Store struct {
	*conn
	cfg    Config
	values *values
	hints  *hints

	Audit       *Audit
	Costs       *Costs
	Credentials *Credentials
	Doctor      *Doctor
	Events      *EventLog
	Links       *Links
	Logins      *Logins
	Memos       *Memos
	Outbox      *Outbox
	Pictures    *Pictures
	Questions   *Questions
	Tally       *Tally
	Threads     *Threads
	Votes       *Votes
	Workers     *Workers

	Paused   *List[Halt]            // classes of which workers take no deliveries
	Cordoned *List[Halt]            // workers that take none, by ID or host; see [Halt]
	Rebuilds *List[Rebuild]         // the last ones, by repository in lower case
	Tokens   *List[json.RawMessage] // what API tokens may do, by their hashes
}

// New returns a store. It checks the configuration and does not connect to Redis.
func New(cfg Config) (*Store, error) {
	if cfg.Blocking == nil {
		cfg.Blocking = cfg.Redis
	}
	for _, c := range []Client{cfg.Redis, cfg.Blocking} {
		if _, ok := c.(*redis.Client); !ok { // such as for a Cluster: a script spans the keys of a thread
			return nil, fmt.Errorf("store: the client of Redis is %T, not *redis.Client", c)
		}
	}
	const day = 24 * time.Hour
	cfg.Prefix = cmp.Or(cfg.Prefix, "errand:")
	cfg.ClaimTTL = cmp.Or(cfg.ClaimTTL, 15*time.Second)
	cfg.Refresh = cmp.Or(cfg.Refresh, 5*time.Second)
	cfg.Outage = cmp.Or(cfg.Outage, 60*time.Second)
	cfg.Retention = cmp.Or(cfg.Retention, 7*day)
	cfg.SessionTTL = cmp.Or(cfg.SessionTTL, 30*day)
	cfg.EventCap = cmp.Or(cfg.EventCap, 5000)
	cfg.AuditCap = cmp.Or(cfg.AuditCap, 20_000)
	cfg.CostCap = cmp.Or(cfg.CostCap, 2000)
	if cfg.Refresh >= cfg.ClaimTTL {
		return nil, fmt.Errorf("store: ClaimTTL %s must be longer than Refresh %s", cfg.ClaimTTL, cfg.Refresh)
	}
	scripts, err := loadScripts()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return newStore(cfg, scripts), nil
}

func newStore(cfg Config, scripts map[string]*redis.Script) *Store {
	c := &conn{redis: cfg.Redis, prefix: cfg.Prefix, scripts: scripts, replicas: cfg.Replicas}
	v := &values{bucket: cfg.Objects}
	h := newHints(cfg.Blocking, cfg.Refresh,
		c.key("cancel"), c.key("answers"), c.key("mail"), c.key("asked"), c.key("replies"))
	// Every event causes a hint, so only processes with followers subscribe to them.
	news := newHints(cfg.Blocking, 2*time.Second, c.key("news"))
	return &Store{
		conn: c, cfg: cfg, values: v, hints: h,

		Audit:       &Audit{c, cfg.AuditCap},
		Costs:       &Costs{c},
		Credentials: &Credentials{c},
		Doctor:      newDoctor(cfg, c, v),
		Events:      &EventLog{c, v, news, make(chan struct{}, readers), cfg.EventCap, cfg.Retention},
		Links:       &Links{List[json.RawMessage]{c, "links"}},
		Logins:      &Logins{c},
		Memos:       &Memos{c, cfg.SessionTTL},
		Outbox:      &Outbox{c, cfg.Retention},
		Pictures:    &Pictures{c, v},
		Questions:   &Questions{c, cfg.Retention},
		Tally:       &Tally{c},
		Threads:     &Threads{c, v, cfg.SessionTTL},
		Votes:       &Votes{c, cfg.Retention},
		Workers:     &Workers{c, h},

		Paused:   &List[Halt]{c, "paused"},
		Cordoned: &List[Halt]{c, cordoned},
		Rebuilds: &List[Rebuild]{c, "rebuilds"},
		Tokens:   &List[json.RawMessage]{c, "tokens"},
	}
}

// Replicate waits until Config.Replicas have what anyone has written to this master before, for writes of others than
// the store. Its error is [ErrNotReplicated] or one of Redis.
func (s *Store) Replicate(ctx context.Context) error {
	err := s.replicate(ctx, func(p redis.Pipeliner) { p.Set(ctx, s.key("replicated"), "", 0) })
	return wrapf(err, "wait for replicas")
}

// Ping returns an error if Redis does not answer.
func (s *Store) Ping(ctx context.Context) error {
	return wrapf(s.redis.Ping(ctx).Err(), "ping redis")
}

// SweepObjects deletes the replaced objects of this process that are due. If the objects are in a directory, it also
// removes the values that expired in Redis; in S3, a lifecycle rule does so.
func (s *Store) SweepObjects(ctx context.Context) error {
	return s.values.sweep(ctx, max(s.cfg.SessionTTL, s.cfg.Retention)+24*time.Hour)
}
