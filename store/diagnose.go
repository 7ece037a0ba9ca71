package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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

// oldest is the first version with the commands that the store uses: GETEX, ZRANGE with BYLEX and REV, XRANGE with an
// exclusive start.
const oldest = "6.2"

// maxSkew is the largest clock difference to Redis that is not reported.
const maxSkew = 5 * time.Second

// Diagnose checks Redis' setup without changing anything: version, eviction, persistence, clock, and the history of
// its data. No findings means that all is well. The access check may be up to 5 s old. It returns an error if Redis
// does not answer.
func (s *Doctor) Diagnose(ctx context.Context) ([]Finding, error) {
	found, err := s.recentAccess(ctx)
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	clock, err := s.redis.Time(ctx).Result()
	if denied(err) {
		return append(found, refused(Fatal, "TIME", "No step of the store works without it.", err)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("diagnose redis: %w", err)
	}
	ahead := time.Since(asked)/2 + asked.Sub(clock) // of Redis; assumes that request and reply take equally long
	lost, err := s.history(ctx, clock)
	switch mayNot := func(f Finding) bool { return strings.HasPrefix(f.What, deniedWhat) }; {
	case denied(err) && !slices.ContainsFunc(found, mayNot): // otherwise a finding already names the key
		lost = []Finding{refused(Warning, "the keys that record lost data", "Lost data and unreadable records are not reported.", err)}
	case err != nil && !denied(err):
		return nil, fmt.Errorf("diagnose redis: %w", err)
	}
	found = slices.Concat(found, skewed(ahead), lost)
	text, err := s.redis.Info(ctx).Result()
	if denied(err) {
		return append(found, refused(Warning, "INFO", "Version, eviction and persistence of Redis cannot be checked.", err)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("diagnose redis: %w", err)
	}
	server := parseInfo(text)
	if settings, err := s.redis.ConfigGet(ctx, "appendfsync").Result(); err == nil { // many hosted services forbid CONFIG
		server["appendfsync"] = settings["appendfsync"]
	}
	return append(diagnose(server), found...), nil
}

// history returns findings about lost data and unreadable records.
func (s *Doctor) history(ctx context.Context, now time.Time) ([]Finding, error) {
	lost, err := s.loss(ctx, now)
	if err != nil {
		return nil, err
	}
	bad, err := s.unreadable(ctx)
	if err != nil {
		return nil, err
	}
	return append(lost, bad...), nil
}

// parseInfo parses the reply to Redis' INFO.
func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// diagnose checks the fields of INFO, and the setting appendfsync if it is known.
func diagnose(server map[string]string) (found []Finding) {
	add := func(level Severity, what, why, remedy string) {
		found = append(found, Finding{level, what, why, remedy})
	}
	if server["redis_version"] == "" {
		add(Warning, "Redis is in memory, within this program", "Tasks do not survive its exit.", "Install redis-server, or set REDIS_URL.")
		return found // it has none of these settings
	}
	if v := server["redis_version"]; before(v, oldest) {
		add(Fatal, "Redis is version "+v, "The store uses commands that it does not have.", "Run Redis "+oldest+" or newer.")
	}
	if server["role"] == "slave" {
		add(Fatal, "Redis is a replica", "It takes no writes.", "Point REDIS_URL to the primary.")
	}
	if server["cluster_enabled"] == "1" {
		add(Fatal, "Redis is a cluster", "A step of the store spans keys that a cluster keeps apart.",
			"Run a single Redis, with replicas if need be.")
	}
	if policy := cmp.Or(server["maxmemory_policy"], "noeviction"); policy != "noeviction" {
		level, when := Fatal, "When memory is full"
		if server["maxmemory"] == "0" {
			level, when = Warning, "Once maxmemory is set and reached"
		}
		add(level, "maxmemory-policy is "+policy, when+" Redis drops live tasks, leases and claims, without a word.",
			"Set maxmemory-policy noeviction.")
	}
	return append(found, persistence(server)...)
}

// persistence checks what a restart of Redis would lose.
func persistence(server map[string]string) []Finding {
	one := func(level Severity, what, why, remedy string) []Finding { return []Finding{{level, what, why, remedy}} }
	if server["aof_enabled"] != "1" {
		return one(Warning, "appendonly is off", "A restart of Redis loses all tasks since its last snapshot, if it takes any.",
			"Set appendonly yes, and keep its directory on a volume.")
	}
	if server["aof_last_write_status"] == "err" {
		return one(Fatal, "Redis cannot write its append-only file", "It refuses writes until it can.", "Look at its disk and its log.")
	}
	switch server["appendfsync"] {
	case "always":
		return nil
	case "everysec":
		return one(Note, "appendfsync is everysec", "A crash of Redis or of its machine loses up to 2 s.",
			"Set appendfsync always if that is too much: each step then waits for the disk.")
	case "no":
		return one(Warning, "appendfsync is no", "A crash of Redis' machine loses what the system had not written yet, often 30 s.",
			"Set appendfsync everysec or always.")
	default:
		return one(Note, "appendfsync cannot be asked for", "It says how much a crash of Redis' machine loses.", "Look at its configuration.")
	}
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
		"Let both synchronise their clocks (NTP).",
	}}
}

// before reports whether version a is older than b, comparing number by number.
func before(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, _ := strconv.Atoi(x[i])
		n, _ := strconv.Atoi(y[i])
		if m != n {
			return m < n
		}
	}
	return false
}

// Epoch returns the name of Redis' current data set. The name is created at the first start and changes when Redis
// loses its data. lost is when the loss was noticed, or zero. known is the result of an earlier call, "" for the
// first: a loss can only be noticed by a caller that knows an epoch.
func (s *Doctor) Epoch(ctx context.Context, known string) (epoch string, lost time.Time, err error) {
	r, err := s.run(ctx, "epoch", known, rand.Text())
	if err != nil {
		return "", time.Time{}, fmt.Errorf("look for redis' epoch: %w", err)
	}
	return r.text(1), fromMicros(r.text(2)), nil
}

// loss reports for [Config.Retention] that Redis has lost its data.
func (s *Doctor) loss(ctx context.Context, now time.Time) ([]Finding, error) {
	r, err := s.redis.HMGet(ctx, s.key.epoch(), "lost").Result()
	if err != nil {
		return nil, fmt.Errorf("look for redis' epoch: %w", err)
	}
	lost := fromMicros(reply(r).text(0))
	if lost.IsZero() || now.Sub(lost) > s.cfg.Retention {
		return nil, nil
	}
	return []Finding{{
		Warning, "Redis lost its data at " + lost.Format("2006-01-02 15:04:05 UTC"),
		"Tasks that waited are gone, and their threads begin new conversations. Runs under way went on.",
		"Find out why: FLUSHALL, a volume that is not mounted, or a restart without appendonly. Ask again for what waited. This is shown for " +
			fmt.Sprintf("%.0f days.", s.cfg.Retention.Hours()/24),
	}}, nil
}
