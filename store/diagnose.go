package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/cache"
)

// Severity is the meaning of a [Finding] for the fleet.
type Severity string

// The severities.
const (
	Fatal   Severity = "error"   // tasks cannot be run, or will be lost in ordinary operation
	Warning Severity = "warning" // tasks are lost, or late, when something else goes wrong
	Note    Severity = "note"    // a choice that an operator should be aware of
)

// Finding describes something about this Redis that an operator should know. It contains no address and no secret.
type Finding struct {
	Severity Severity `json:"severity"`
	What     string   `json:"what"` // the state of Redis
	Why      string   `json:"why"`  // why it matters
	Remedy   string   `json:"remedy,omitempty"`
}

// Evicts reports whether it is about a Redis that drops tasks without a word when its memory is full.
func (f Finding) Evicts() bool { return f.Severity == Fatal && strings.HasPrefix(f.What, evicts) }

// Objects returns why this process asks the object store nothing at the moment, or nil.
func (s *Doctor) Objects() error { return cmp.Or(s.values.saving.open(), s.values.reading.open()) }

// maxSkew is the largest clock difference to Redis that is not reported.
const maxSkew = 5 * time.Second

// Diagnose checks Redis' setup without changing anything: version, memory, persistence, clock, and the history of its
// data. No findings means that all is well. The access check may be up to 5 s old. It returns an error if Redis
// does not answer.
func (s *Doctor) Diagnose(ctx context.Context) ([]Finding, error) {
	found, _, err := s.Examine(ctx)
	return found, err
}

// Examine returns the findings of Diagnose, and Redis' memory. It is unknown if the user may not use TIME or INFO.
func (s *Doctor) Examine(ctx context.Context) (found []Finding, memory Memory, err error) {
	if found, err = s.accessed.Get(ctx, "", s.access); err != nil {
		return nil, memory, err
	}
	found = slices.Clip(found) // others have it too
	asked := time.Now()
	clock, err := s.redis.Time(ctx).Result()
	if denied(err) {
		return append(found, refused(Fatal, "TIME", "No step of the store works without it.", err)), memory, nil
	}
	if err != nil {
		return nil, memory, fmt.Errorf("diagnose redis: %w", err)
	}
	ahead := time.Since(asked)/2 + asked.Sub(clock) // of Redis; assumes that request and reply take equally long
	lost, err := s.loss(ctx, clock)
	if err != nil && !denied(err) {
		return nil, memory, fmt.Errorf("diagnose redis: %w", err)
	}
	isDenial := func(f Finding) bool { return strings.HasPrefix(f.What, deniedWhat) }
	if err != nil && !slices.ContainsFunc(found, isDenial) { // otherwise a finding already names the key
		lost = []Finding{refused(Warning, "the key that records lost data", "Lost data is not reported.", err)}
	}
	found = slices.Concat(found, skewed(ahead), lost)
	text, err := s.redis.Info(ctx).Result()
	if denied(err) {
		return append(found, s.withoutInfo(err)), memory, nil
	}
	if err != nil {
		return nil, memory, fmt.Errorf("diagnose redis: %w", err)
	}
	server := parseInfo(text)
	// many hosted services forbid CONFIG
	if settings, err := s.redis.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		server["appendfsync"] = settings["appendfsync"]
	}
	return append(diagnose(server), found...), memoryOf(server), nil
}

// withoutInfo returns the finding for a user who may not use INFO, which says with its run_id that another process of
// Redis has the data.
func (s *Doctor) withoutInfo(err error) Finding {
	f := refused(Warning, "INFO", "Version, eviction and persistence of Redis cannot be checked.", err)
	if s.replicas > 0 || s.sentinels {
		f = refused(Fatal, "INFO",
			"errand cannot see that a replica took over, and then does tasks again whose endings that lacks.", err)
	}
	f.Remedy = "Add +info to the rights of the user by ACL SETUSER (docs/redis.md)."
	return f
}

// skewed returns a finding if this machine's clock is too far ahead of or behind Redis'.
func skewed(ahead time.Duration) []Finding {
	if ahead.Abs() <= maxSkew {
		return nil
	}
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	return []Finding{{
		Warning, fmt.Sprintf("this machine's clock is %v %s Redis'", ahead.Abs().Round(time.Second), side),
		"Tasks that wait for a time start too late or too early by as much, and so do asynq's leases.",
		"Synchronise both clocks, for example with NTP.",
	}}
}

// Epoch returns the name of Redis' current data set. The name is created at the first start and changes when Redis
// loses its data. lost is when the loss was noticed, or zero. known is the result of an earlier call, "" for the
// first: a loss can only be noticed by a caller that knows an epoch.
func (s *Doctor) Epoch(ctx context.Context, known string) (epoch string, lost time.Time, err error) {
	r, err := s.run(ctx, "epoch", known, rand.Text())
	return r.text(1), fromMicros(r.text(2)), wrapf(err, "look for redis' epoch")
}

// loss reports for [Config.Retention] that Redis has lost its data.
func (s *Doctor) loss(ctx context.Context, now time.Time) ([]Finding, error) {
	r, err := s.redis.HMGet(ctx, s.key("epoch"), "lost").Result()
	if err != nil {
		return nil, fmt.Errorf("look for redis' epoch: %w", err)
	}
	lost := fromMicros(reply(r).text(0))
	if lost.IsZero() || now.Sub(lost) > s.retention {
		return nil, nil
	}
	return []Finding{{
		Warning, "Redis lost its data at " + lost.Format("2006-01-02 15:04:05 UTC"),
		"Tasks that waited are gone, and their threads begin new conversations. Runs under way went on.",
		"Find out why: FLUSHALL, a volume that is not mounted, or a restart without appendonly. Request the waiting " +
			"tasks again. This is shown for " +
			fmt.Sprintf("%.0f days.", s.retention.Hours()/24),
	}}, nil
}

// OpenRedis is the text of the [Finding] about a Redis without a password.
const OpenRedis = "Redis asks for no password"

// Doctor examines Redis.
type Doctor struct {
	*conn
	values    *values
	retention time.Duration           // of what is reported about the past
	sentinels bool                    // Config.Sentinels
	allowOpen bool                    // Config.AllowOpen
	accessed  *cache.Cache[[]Finding] // of access, which opens connections: every readiness probe may trigger it
}

func newDoctor(cfg Config, c *conn, v *values) *Doctor {
	accessed := &cache.Cache[[]Finding]{Limit: 30 * time.Second, Life: 5 * time.Second, Now: time.Now}
	return &Doctor{c, v, cfg.Retention, cfg.Sentinels, cfg.AllowOpen, accessed}
}

// access reports whether anyone can use Redis, and which permissions this process lacks.
func (s *Doctor) access(ctx context.Context) (found []Finding, err error) {
	client, ok := s.redis.(*redis.Client)
	if !ok {
		return nil, nil
	}
	// The keys and channels of errand and asynq, scripts, and a write that needs memory but changes nothing.
	for i, key := range []string{s.prefix + "x", "asynq:x"} {
		err := s.redis.Eval(ctx, "return redis.call('SETRANGE', KEYS[1], 0, '')", []string{key}).Err()
		if denied(err) {
			found = append(found, refused(Fatal, "scripts on "+key[:len(key)-1]+"*",
				"No task can be stored or run without it.", err))
		} else if why, remedy := Unwritable(err); remedy != "" && i == 0 { // it is the same for the other key
			found = append(found, Finding{
				Fatal, "Redis refuses writes: " + why, "No task can be stored or run. Redis says: " + err.Error(),
				remedy,
			})
		} else if err != nil && remedy == "" {
			return nil, fmt.Errorf("diagnose redis: %w", err)
		}
	}
	refusals, err := s.channels(ctx)
	if err != nil {
		return nil, err
	}
	found = append(found, refusals...)
	if isOpen(ctx, client.Options()) { // after the others: a Redis that was still starting would count as closed
		found = slices.Insert(found, 0, s.openRedis())
	}
	return found, nil
}

// openRedis is the finding about a Redis without a password.
func (s *Doctor) openRedis() Finding {
	severity, or := Fatal, ", or ERRAND_ALLOW_OPEN_REDIS=true"
	if s.allowOpen {
		severity, or = Warning, ""
	}
	const why = "Anyone who can connect to it controls every worker, including the tools of agents."
	return Finding{severity, OpenRedis, why, "Set requirepass of Redis, and the password in REDIS_URL" + or + "."}
}

// Unwritable returns why an error says that Redis refuses all writes, and the remedy, or "".
func Unwritable(err error) (why, remedy string) {
	if err == nil {
		return "", ""
	}
	for word, s := range map[string][2]string{
		"OOM":        {"it is out of memory", "Raise maxmemory, or set ERRAND_OBJECTS."},
		"READONLY":   {"it is a replica", "Point REDIS_URL to the primary. In a fail-over this passes."},
		"NOREPLICAS": {"it has too few replicas", "Start a replica, or lower min-replicas-to-write."},
		"MISCONF":    {"it cannot write to its disk", "Look at its disk and its log."},
	} {
		// Redis 6 quotes it in a script's error
		if redis.HasErrorPrefix(err, word) || strings.Contains(err.Error(), "-"+word+" ") {
			return s[0], s[1]
		}
	}
	return "", ""
}

// channels reports the channels that this process may not use. A script that may not publish stops half-way.
func (s *Doctor) channels(ctx context.Context) (found []Finding, err error) {
	subscription := subscribe(ctx, s.redis, "asynq:cancel")
	defer subscription.Close()
	_, heard := subscription.Receive(ctx)
	if denied(heard) {
		found = append(found, refused(Fatal, "the channel asynq:cancel",
			"asynq listens there, and logs an error every five seconds without it.", heard))
	} else if heard != nil {
		return nil, fmt.Errorf("diagnose redis: %w", heard)
	}
	channels := []string{
		s.key("cancel"), s.key("news"), s.key("mail"), s.key("answers"), s.key("asked"), s.key("replies"),
	}
	said, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, c := range channels {
			p.Publish(ctx, c, "") // it names no task, so no process acts on it
		}
		return nil
	})
	var lacking []string
	for i, c := range said {
		if denied(c.Err()) {
			lacking = append(lacking, channels[i])
		} else if c.Err() != nil {
			return nil, fmt.Errorf("diagnose redis: %w", c.Err())
		}
	}
	if len(lacking) > 0 {
		found = append(found, refused(Fatal, "the channels "+strings.Join(lacking, ", "),
			"Tasks cannot be submitted, run, asked about or cancelled without all of them.", err))
	}
	return found, nil
}

// isOpen reports whether a Redis accepts commands without credentials. A Unix socket counts as closed if other users
// cannot open it.
func isOpen(ctx context.Context, o *redis.Options) bool {
	if o.Network == "unix" {
		if info, err := os.Stat(o.Addr); err == nil && info.Mode().Perm()&0o022 == 0 {
			return false
		}
	}
	anybody := redis.NewClient(&redis.Options{
		Network: o.Network, Addr: o.Addr, Dialer: o.Dialer, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout,
		MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	defer anybody.Close()
	return anybody.Ping(ctx).Err() == nil
}

// denied reports whether Redis' access control lists rejected a command.
func denied(err error) bool { return err != nil && strings.Contains(err.Error(), "NOPERM") }

// deniedWhat is the start of the text of such a finding.
const deniedWhat = "the Redis user may not use "

// refused returns the finding for a rejected command.
func refused(level Severity, what, why string, err error) Finding {
	return Finding{
		level, deniedWhat + what, why + " Redis says: " + err.Error(), "Allow it by ACL SETUSER (docs/redis.md).",
	}
}
