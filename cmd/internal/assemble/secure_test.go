package assemble

import (
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/fake/redissentinel"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/tasks"
)

// secureParts are those of a process with these settings and the log of its start.
func secureParts(t *testing.T, settings map[string]string) (*Parts, *testlog.Log) {
	t.Helper()
	c, err := config.Load(func(name string) string { return settings[name] }, config.RoleStandalone)
	if err != nil && !strings.HasPrefix(err.Error(), "configuration: 1 problem\n  - ANTHROPIC_API_KEY") {
		t.Fatal(err)
	}
	text := &testlog.Log{}
	p, err := New(c, slog.New(slog.NewTextHandler(text, nil)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.checkStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, text
}

// A process uses Sentinels and Redis servers that require TLS with a client certificate and a user with the documented
// rights, follows their fail-over, and says which setting is wrong.
func TestSecureSentinels(t *testing.T) {
	t.Parallel()
	r, err := redissentinel.StartSecure(t.Context(), t.TempDir(), "../../../docs/redis.md")
	t.Cleanup(r.Stop)
	if err != nil {
		t.Fatal(err)
	}
	url := r.URL()
	const ca, cert, key = "ERRAND_REDIS_CA_FILE", "ERRAND_REDIS_CERT_FILE", "ERRAND_REDIS_KEY_FILE"
	right := map[string]string{"REDIS_URL": url, "ERRAND_REDIS_REPLICAS": "1"}
	right[ca], right[cert], right[key] = r.Certificates()
	p, log := secureParts(t, right)
	if err := p.Ready(t.Context()); err != nil ||
		strings.Contains(log.String(), "level=WARN msg=redis what=\"the Redis user") {
		t.Errorf("ready: %v\n%s", err, log)
	}
	submit := func(n string) {
		t.Helper()
		if _, err := p.Desk.Submit(t.Context(), tasks.Task{
			ID: tasks.NewID(time.Unix(1_700_000_000, 0), "test", n), Source: "test", Thread: "test/" + n,
			Class: tasks.Interactive, Profile: agent.Read, Prompt: "do it",
		}); err != nil {
			t.Errorf("submit %s: %v", n, err)
		}
	}
	submit("before") // waits for the replica

	foreign := t.TempDir()
	if err := redissentinel.WriteCertificates(foreign, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, guards, _ := strings.Cut(url, "sentinel_password=")
	guards, _, _ = strings.Cut(guards, "&")
	in := func(old, new string) string {
		changed := strings.ReplaceAll(url, old, new)
		if changed == url {
			t.Fatalf("no %s in the URL", old)
		}
		return changed
	}
	const (
		authority = "Redis' certificate is of an unknown authority"
		client    = "Redis refuses the client certificate"
		user      = "Redis refuses the user or password"
		guardUser = "the Sentinels refuse the user or password"
	)
	t.Run("wrong", func(t *testing.T) { // ends before the fail-over
		for _, tc := range []struct {
			name          string
			changes       map[string]string
			why, mentions string
		}{
			{"CA", map[string]string{ca: filepath.Join(foreign, "ca.pem")}, authority, ca},
			{"no CA", map[string]string{ca: ""}, authority, ca},
			{"certificate", map[string]string{
				cert: filepath.Join(foreign, "cert.pem"), key: filepath.Join(foreign, "key.pem"),
			}, client, cert},
			{"no certificate", map[string]string{cert: "", key: ""}, client, cert},
			{
				"host",
				map[string]string{"REDIS_URL": in("127.0.0.1", "localhost")},
				"Redis' certificate is for another host", "host in REDIS_URL",
			},
			{
				"password",
				map[string]string{"REDIS_URL": in("://errand:", "://errand:x")},
				user,
				"password in REDIS_URL",
			},
			{
				"user",
				map[string]string{"REDIS_URL": in("://errand:", "://xerrand:")},
				user,
				"user and password in REDIS_URL",
			},
			{
				"Sentinel's password",
				map[string]string{"REDIS_URL": in(guards, "wrong")},
				guardUser,
				"sentinel_password in REDIS_URL",
			},
			{
				"no Sentinel's password",
				map[string]string{"REDIS_URL": in("sentinel_password="+guards, "")},
				guardUser, "sentinel_password in REDIS_URL",
			},
			{
				"Sentinel's user",
				map[string]string{"REDIS_URL": in("sentinel_user=errand", "sentinel_user=x")},
				guardUser, "sentinel_user and",
			},
			{
				"master",
				map[string]string{"REDIS_URL": in("master=errand", "master=x")},
				"the Sentinels do not know the master", "master in REDIS_URL",
			},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				settings := maps.Clone(right)
				maps.Copy(settings, tc.changes)
				p, log := secureParts(t, settings)
				_, said, _ := strings.Cut(log.String(), `msg="redis does not answer" `)
				if !strings.HasPrefix(said, `why="`+tc.why+`"`) ||
					!strings.Contains(said[strings.Index(said, "remedy="):], tc.mentions) {
					t.Errorf("logs %s", log)
				}
				if err := p.Ready(t.Context()); err == nil || err.Error() != tc.why {
					t.Errorf("ready: %v", err)
				}
			})
		}
	})

	if err := r.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for err := p.Redis.Set(t.Context(), "errand:x", 1, 0).Err(); err != nil; err = p.Redis.Set(t.Context(), "errand:x", 1, 0).Err() {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	submit("after")
}

// Behind Sentinels no process is ready whose user may not use INFO: it would not see that a replica took over.
func TestSentinelsNeedInfo(t *testing.T) {
	t.Parallel()
	r, err := redissentinel.Start(t.Context(), t.TempDir())
	t.Cleanup(r.Stop)
	if err != nil {
		t.Fatal(err)
	}
	admin := r.Client()
	t.Cleanup(func() { _ = admin.Close() })
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "errand", "reset", "on", ">pw", "~*", "&*", "+@all", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("errand", "pw")
	p, log := secureParts(t, map[string]string{"REDIS_URL": address.String()})
	if err := p.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "INFO") ||
		!strings.Contains(log.String(), "+info") {
		t.Errorf("ready: %v\n%s", err, log)
	}
}
