package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Config is what a store needs. Redis is required, a zero duration or number is the default in brackets.
type Config struct {
	Redis    redis.UniversalClient // not closed by the store; Cluster and Ring are refused
	Blocking redis.UniversalClient // for the subscription and the readings of Follow, so that they take nothing from the others; nil = Redis
	Prefix   string                // of every key ["errand:"]

	AllowOpen bool // Redis may do without a password: a warning, where it is an error otherwise

	ClaimTTL    time.Duration // a claim that nobody keeps is gone after this [15 s]
	Refresh     time.Duration // how often Keep renews it, well below ClaimTTL [5 s]
	Outage      time.Duration // how long a holder trusts its claim while Redis does not answer [60 s]
	Retention   time.Duration // how long a posted task and its events stay readable [7 days]
	SessionTTL  time.Duration // of a session and a checkpoint since the last save, and of an alias since its last use [30 days]
	OutboxLease time.Duration // how long one poster has an item for itself [60 s]
	EventCap    int           // newest events kept per task [5000]
	CostCap     int           // how many combinations of scopes and model the costs of a day tell apart; the rest is one [2000]
}

// Store is the fleet's memory. It holds no state of its own but what Diagnose found lately, and no goroutine but the one that reads for followers, while there are any.
type Store struct {
	cfg      Config
	redis    redis.UniversalClient
	blocking redis.UniversalClient
	key      keys
	scripts  map[string]*redis.Script // read-only after New

	hub      *hub // of those who follow
	accessed *accessed

	// slice is how often what is followed is read without a hint. Only tests change it.
	slice time.Duration
}

// New checks the configuration. It does not talk to Redis, see [Store.Ping].
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
		return nil, fmt.Errorf("store: a claim of %s cannot be kept by a refresh every %s", cfg.ClaimTTL, cfg.Refresh)
	}
	scripts, err := loadScripts()
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{cfg: cfg, redis: cfg.Redis, blocking: cfg.Blocking, key: keys{cfg.Prefix}, scripts: scripts, slice: 2 * time.Second}
	s.accessed = &accessed{asking: make(chan struct{}, 1)}
	s.hub = &hub{store: s, feeds: map[string]*feed{}}
	return s, nil
}

// Ping tells whether Redis answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}
