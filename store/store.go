package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config configures a store. Redis is required. A zero duration or number means the default in brackets.
type Config struct {
	Redis    redis.UniversalClient // not closed by the store; Cluster and Ring are refused
	Blocking redis.UniversalClient // for the subscription and reads of followers, separate from the others; nil = Redis
	Prefix   string                // of every key ["errand:"]

	AllowOpen bool // a Redis without a password is a warning, not an error

	ClaimTTL    time.Duration // a claim expires this long after its last renewal [15 s]
	Refresh     time.Duration // how often Keep renews a claim, well below ClaimTTL [5 s]
	Outage      time.Duration // how long a holder trusts its claim while Redis does not answer [60 s]
	Retention   time.Duration // how long a posted task and its events stay readable [7 days]
	SessionTTL  time.Duration // of a session and a checkpoint since the last save, and of an alias since its last use [30 days]
	OutboxLease time.Duration // how long a poster holds an item [60 s]
	EventCap    int           // newest events kept per task [5000]
	CostCap     int           // how many combinations of scopes and model the costs of a day distinguish [2000]
}

// Store holds the tasks. Its fields hold everything else and share its connection. All methods are safe for concurrent
// use. A store starts a goroutine only while tasks are followed.
type Store struct {
	*db

	Costs       *Costs
	Credentials *Credentials
	Doctor      *Doctor
	Events      *EventLog
	Memos       *Memos
	Outbox      *Outbox
	Pictures    *Pictures
	Questions   *Questions
	Threads     *Threads
	Votes       *Votes
	Workers     *Workers
}

// The parts of a store.
type (
	// Costs are the costs of runs.
	Costs struct{ *db }
	// Credentials records which model credentials are throttled or refused.
	Credentials struct{ *db }
	// Memos holds what sources remember between tasks, and the rates that they share.
	Memos struct{ *db }
	// Outbox holds the ended tasks whose final message is not posted yet.
	Outbox struct{ *db }
	// Pictures holds the pictures that came with tasks.
	Pictures struct{ *db }
	// Questions holds the questions of running tasks and their answers.
	Questions struct{ *db }
	// Threads holds what belongs to a thread and outlives its tasks.
	Threads struct{ *db }
	// Votes holds people's ratings of answers.
	Votes struct{ *db }
	// Workers holds the workers that are alive, and requests that any of them can answer.
	Workers struct{ *db }
)

// db is the connection that the parts of a store share.
type db struct {
	cfg      Config
	redis    redis.UniversalClient
	blocking redis.UniversalClient
	key      keys
	scripts  map[string]*redis.Script // read-only after New
}

// New returns a store. It checks the configuration and does not connect to Redis.
func New(cfg Config) (*Store, error) {
	for _, c := range []redis.UniversalClient{cfg.Redis, cfg.Blocking} {
		switch c.(type) {
		case *redis.ClusterClient, *redis.Ring:
			return nil, errors.New("store: Redis Cluster and Ring are not supported: a script spans the keys of a thread")
		}
	}
	if cfg.Redis == nil {
		return nil, errors.New("store: no Redis client")
	}
	if cfg.Blocking == nil {
		cfg.Blocking = cfg.Redis
	}
	const day = 24 * time.Hour
	cfg.Prefix = cmp.Or(cfg.Prefix, "errand:")
	cfg.ClaimTTL = cmp.Or(cfg.ClaimTTL, 15*time.Second)
	cfg.Refresh = cmp.Or(cfg.Refresh, 5*time.Second)
	cfg.Outage = cmp.Or(cfg.Outage, 60*time.Second)
	cfg.Retention = cmp.Or(cfg.Retention, 7*day)
	cfg.SessionTTL = cmp.Or(cfg.SessionTTL, 30*day)
	cfg.OutboxLease = cmp.Or(cfg.OutboxLease, 60*time.Second)
	cfg.EventCap = cmp.Or(cfg.EventCap, 5000)
	cfg.CostCap = cmp.Or(cfg.CostCap, 2000)
	if cfg.Refresh >= cfg.ClaimTTL {
		return nil, fmt.Errorf("store: ClaimTTL %s must be longer than Refresh %s", cfg.ClaimTTL, cfg.Refresh)
	}
	scripts, err := loadScripts()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	d := &db{cfg: cfg, redis: cfg.Redis, blocking: cfg.Blocking, key: keys{cfg.Prefix}, scripts: scripts}
	return &Store{
		db: d, Costs: &Costs{d}, Credentials: &Credentials{d}, Doctor: newDoctor(d), Events: newEventLog(d), Memos: &Memos{d},
		Outbox: &Outbox{d}, Pictures: &Pictures{d}, Questions: &Questions{d}, Threads: &Threads{d}, Votes: &Votes{d},
		Workers: &Workers{d},
	}, nil
}

// Ping returns an error if Redis does not answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}
