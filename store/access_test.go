package store

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// acl creates a Redis user with these rights and a store that uses it.
func acl(t *testing.T, cfg Config, admin *redis.Client, address string, rights ...any) *Store {
	t.Helper()
	args := append([]any{"ACL", "SETUSER", "fleet", "reset", "on", ">pw"}, rights...)
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("fleet", "pw")
	cfg.Redis = dial(t, u.String())
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Without INFO nothing shows that a replica took over, which is an error where that may happen.
func TestDiagnoseWithoutInfo(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t)
	admin := dial(t, address)
	for _, c := range []struct {
		config Config
		want   Severity
	}{{Config{}, Warning}, {Config{Replicas: 1}, Fatal}, {Config{Sentinels: true}, Fatal}} {
		found,
			err := acl(t, c.config, admin, address, "~errand:*", "~asynq:*", "&*", "+@all", "-info").Doctor.Diagnose(t.Context())
		if err != nil || len(found) != 1 || found[0].Severity != c.want || !strings.Contains(found[0].Remedy, "+info") {
			t.Errorf("%+v: %+v, %v", c.config, found, err)
		}
	}
}

// An ACL user needs only the documented rights. A missing right is reported.
func TestDiagnoseUserOfACLs(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t)
	admin := dial(t, address)
	all := []any{"~errand:*", "~asynq:*", "&asynq:*", "&errand:*", "+@all", "-@admin", "-@dangerous", "+info"}
	for name, c := range map[string]struct {
		rights []any
		want   []string
		says   string
	}{
		"enough":  {all, []string{"warning: Redis runs without appendonly"}, ""},
		"no info": {append(all[:7:7], "-info"), []string{"warning: the Redis user may not use INFO"}, "'info'"},
		"no time": {append(all[:8:8], "-time"), []string{"error: the Redis user may not use TIME"}, "'time'"},
		"no hashes": {
			append(all[:8:8], "-hmget"),
			[]string{
				"warning: the Redis user may not use the key that records lost data", "warning: Redis runs without appendonly",
			},
			"'hmget'",
		},
		"no keys": {
			append([]any{"~asynq:*"}, all[2:]...), []string{
				"error: the Redis user may not use scripts on errand:*", "warning: Redis runs without appendonly",
			}, "key",
		},
		"no channel": {
			append(all[:2:2], all[3:]...), []string{
				"error: the Redis user may not use the channel asynq:cancel", "warning: Redis runs without appendonly",
			}, "channel",
		},
		"no channel of ours": {
			append(all[:3:3], all[4:]...), []string{
				"error: the Redis user may not use the channels errand:cancel, errand:news, errand:mail, errand:answers, " +
					"errand:asked, errand:replies",
				"warning: Redis runs without appendonly",
			}, "channel",
		},
		"one channel less": {
			append(slices.Clone(all[:3:3]), append([]any{
				"&errand:news", "&errand:mail", "&errand:answers", "&errand:asked", "&errand:replies",
			}, all[4:]...)...), []string{
				"error: the Redis user may not use the channels errand:cancel", "warning: Redis runs without appendonly",
			}, "channel",
		},
	} {
		found, err := acl(t, Config{}, admin, address, c.rights...).Doctor.Diagnose(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if found[0].What == "Redis runs without appendonly" { // sort findings about rights first
			found = append(found[1:], found[0])
		}
		got := brief(found)
		if diff := cmp.Diff(c.want, got); diff != "" || c.says != "" && !strings.Contains(found[0].Why, c.says) {
			t.Errorf("%s: %v\n%s", name, found, diff)
		}
	}
}

// A Redis that needs no password is open, even if its address contains one.
func TestDiagnoseOpenRedis(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t)
	admin := dial(t, address)
	const found = "error: " + OpenRedis + ",warning: Redis runs without appendonly"
	check := func(want string, s *Store) {
		t.Helper()
		list, err := s.Doctor.Diagnose(t.Context())
		got := brief(list)
		if len(got) == 2 {
			got[0], got[1] = got[1], got[0]
		}
		if err != nil || strings.Join(got, ",") != want {
			t.Errorf("%v, %v, want %s", got, err, want)
		}
	}
	store := func(c Config) *Store {
		t.Helper()
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	check("warning: Redis runs without appendonly", store(Config{Redis: admin}))
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "nopass").Err(); err != nil {
		t.Fatal(err)
	}
	check(found, store(Config{Redis: admin})) // with a password in the address
	check(strings.Replace(found, "error", "warning", 1), store(Config{Redis: admin, AllowOpen: true}))
	list, err := store(Config{Redis: admin, AllowOpen: true}).Doctor.Diagnose(t.Context())
	for _, one := range list {
		if strings.Contains(one.Remedy, "ERRAND_ALLOW_OPEN_REDIS") {
			t.Errorf("the remedy is what has been done: %s, %v", one.Remedy, err)
		}
	}
}

// Readiness probes should not each open connections: the result of the access check is reused for some seconds.
func TestDiagnoseAsksForAccessOnce(t *testing.T) {
	t.Parallel()
	admin := dial(t, redistest.Start(t))
	s, err := New(Config{Redis: admin})
	if err != nil {
		t.Fatal(err)
	}
	connections := func() string {
		return parseInfo(admin.Info(t.Context(), "stats").Val())["total_connections_received"]
	}
	before := ""
	for range 3 {
		if _, err := s.Doctor.Diagnose(t.Context()); err != nil {
			t.Fatal(err)
		}
		if before == "" {
			before = connections()
		}
	}
	if after := connections(); after != before {
		t.Errorf("%s connections, then %s", before, after)
	}
	s.Doctor.accessed.Now = func() time.Time { return time.Now().Add(s.Doctor.accessed.Life) }
	if _, err := s.Doctor.Diagnose(t.Context()); err != nil || connections() == before {
		t.Errorf("access was not checked again: %v", err)
	}
}
