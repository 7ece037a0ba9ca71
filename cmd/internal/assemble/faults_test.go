package assemble

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/redissentinel"
	"github.com/errand-fleet/errand/internal/redisserver"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks"
)

// broken is a Redis that a test breaks and repairs.
type broken struct {
	*testing.T
	admin    *redis.Client
	settings map[string]string // of the processes that start next
	address  *url.URL
	memory   *miniredis.Miniredis
	expired  []string // a certificate of a known CA, and its key
}

func (b *broken) do(args ...any) {
	b.Helper()
	if err := b.admin.Do(b.Context(), args...).Err(); err != nil {
		b.Fatalf("%v: %v", args, err)
	}
}

// set changes settings of Redis and ends the connections that were made under the old ones.
func (b *broken) set(settings ...any) {
	b.Helper()
	b.do(append([]any{"CONFIG", "SET"}, settings...)...)
	b.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

// useTLS lets Redis and the processes talk TLS.
func (b *broken) useTLS() {
	b.Helper()
	good, old, both := b.TempDir(), b.TempDir(), filepath.Join(b.TempDir(), "ca.pem")
	text := ""
	for dir, expires := range map[string]time.Time{good: time.Now().Add(time.Hour), old: time.Now().Add(-time.Minute)} {
		if err := redissentinel.WriteCertificates(dir, expires); err != nil {
			b.Fatal(err)
		}
		ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		if err != nil {
			b.Fatal(err)
		}
		text += string(ca)
	}
	if err := os.WriteFile(both, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	port, err := redisserver.FreePort(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	pair := func(dir string) []string {
		return []string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	}
	use := pair(good)
	b.do("CONFIG", "SET", "tls-ca-cert-file", both, "tls-port", port, "tls-cert-file", use[0], "tls-key-file", use[1])
	secure := *b.address
	secure.Scheme, secure.Host = "rediss", fmt.Sprintf("127.0.0.1:%d", port)
	b.settings["REDIS_URL"], b.settings["ERRAND_REDIS_CA_FILE"] = secure.String(), both
	b.settings["ERRAND_REDIS_CERT_FILE"], b.settings["ERRAND_REDIS_KEY_FILE"], b.expired = use[0], use[1], pair(old)
}

// fault breaks a Redis and returns its repair. Some faults let a process that has started before submit tasks.
type fault struct {
	says   string // by Ready
	submit bool
	fail   func(b *broken) (repair func())
}

// writes is a fault in which Redis refuses writes.
func writes(says string, settings ...any) fault {
	return fault{"Redis refuses writes: " + says, false, func(b *broken) func() {
		b.do(append([]any{"CONFIG", "SET"}, settings...)...)
		return func() { b.do("CONFIG", "SET", settings[0], "0") }
	}}
}

var faults = map[string]fault{
	"it is unreachable": {"Redis does not answer", false, func(b *broken) func() {
		b.set("port", "0")
		return func() { b.set("port", b.address.Port()) }
	}},
	"it is slow or frozen": {"Redis does not answer", false, func(b *broken) func() {
		pid, err := strconv.Atoi(b.admin.InfoMap(b.Context(), "server").Item("Server", "process_id"))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGSTOP)
		}
		if err != nil {
			b.Fatal(err)
		}
		return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	}},
	"it reads its data after a restart": {"Redis is loading its data", false, func(b *broken) func() {
		b.memory.SetError("LOADING Redis is loading the dataset in memory")
		return func() { b.memory.SetError("") }
	}},
	"it is out of memory":     writes("it is out of memory", "maxmemory", "1"),
	"it has too few replicas": writes("it has too few replicas", "min-replicas-to-write", "1"),
	"it is read-only (a replica)": {"Redis is a replica", false, func(b *broken) func() {
		b.do("REPLICAOF", "127.0.0.1", "1")
		return func() { b.do("REPLICAOF", "NO", "ONE") }
	}},
	"its disk is full": {"Redis refuses writes: it cannot write to its disk", false, func(b *broken) func() {
		if err := os.RemoveAll(b.admin.ConfigGet(b.Context(), "dir").Val()["dir"]); err != nil {
			b.Fatal(err)
		}
		b.do("CONFIG", "SET", "save", "3600 1")
		b.do("BGSAVE")
		for !strings.Contains(b.admin.Info(b.Context(), "persistence").Val(), "rdb_last_bgsave_status:err") {
			if b.Context().Err() != nil {
				b.Fatal("the snapshot does not fail")
			}
		}
		return func() { b.do("CONFIG", "SET", "save", "") }
	}},
	"the user or password is wrong": {"Redis refuses the user or password", false, func(b *broken) func() {
		password, _ := b.address.User.Password()
		b.set("requirepass", "another")
		return func() { b.set("requirepass", password) }
	}},
	"it refuses for another reason": {"Redis refuses requests", true, func(b *broken) func() {
		good := maps.Clone(b.settings)
		b.settings["REDIS_URL"] += "?db=99"
		return func() { maps.Copy(b.settings, good) }
	}},
	"it is a cluster": {"Redis is a cluster", false, func(b *broken) func() {
		b.memory.SetError("MOVED 3999 10.0.0.5:6379")
		return func() { b.memory.SetError("") }
	}},
	"its certificate has expired": {"Redis' certificate has expired", false, func(b *broken) func() {
		good := []any{
			"tls-cert-file", b.settings["ERRAND_REDIS_CERT_FILE"], "tls-key-file", b.settings["ERRAND_REDIS_KEY_FILE"],
		}
		b.set("tls-cert-file", b.expired[0], "tls-key-file", b.expired[1])
		return func() { b.set(good...) }
	}},
	"the client certificate has expired": {"Redis refuses the client certificate", true, func(b *broken) func() {
		good := maps.Clone(b.settings)
		b.settings["ERRAND_REDIS_CERT_FILE"], b.settings["ERRAND_REDIS_KEY_FILE"] = b.expired[0], b.expired[1]
		return func() { maps.Copy(b.settings, good) }
	}},
}

// Each fault of Redis is reported as the table of docs/faults.md says, with a remedy, and nothing has to be
// started again when it is over.
func TestFaultsOfRedis(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{} // by fault: what is said
	for _, row := range regexp.MustCompile("(?m)^\\| ([^|]+) \\| `([^`|]+)`[^|]*\\|.*TestFaultsOfRedis").FindAllStringSubmatch(string(page), -1) {
		documented[row[1]] = row[2]
	}
	for name, f := range faults {
		if documented[name] != f.says {
			t.Errorf("docs/faults.md says %q if %s, want %q", documented[name], name, f.says)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &broken{T: t, settings: map[string]string{}}
			b.start(strings.Contains(name, "restart") || strings.Contains(name, "cluster"))
			if strings.Contains(name, "certificate") {
				b.useTLS()
			}
			f.try(b)
		})
	}
	if len(documented) != len(faults) {
		t.Errorf("docs/faults.md has %d of %d faults", len(documented), len(faults))
	}
}

// start starts the Redis. One in memory can be told to be loading.
func (b *broken) start(inMemory bool) {
	if inMemory {
		b.memory = miniredis.RunT(b)
		b.memory.RequireAuth("pw")
		b.settings["REDIS_URL"] = "redis://:pw@" + b.memory.Addr()
		return
	}
	b.settings["REDIS_URL"] = redistest.Start(b)
	b.address, _ = url.Parse(b.settings["REDIS_URL"])
	o, err := redis.ParseURL(b.settings["REDIS_URL"])
	if err != nil {
		b.Fatal(err)
	}
	o.PoolSize = 1 // a connection that outlives the faults
	b.admin = redis.NewClient(o)
	b.Cleanup(func() { _ = b.admin.Close() })
}

func (f fault) try(b *broken) {
	t := b.T
	before, _ := secureParts(t, b.settings)
	n := 0
	submit := func(p *Parts) error {
		n++
		_, err := p.Desk.Submit(t.Context(), tasks.Task{
			ID: tasks.NewID(time.Unix(1_700_000_000, 0), "test", strconv.Itoa(n)), Source: "test", Thread: fmt.Sprint("test/", n),
			Class: tasks.Interactive, Profile: agent.Read, Prompt: "do it",
		})
		return err
	}
	if err := submit(before); err != nil {
		t.Fatal(err)
	}
	ready := func(p *Parts) error {
		ctx, cancel := context.WithTimeout(t.Context(), diagnoseLimit)
		defer cancel()
		return p.Ready(ctx)
	}

	repair := f.fail(b)
	during, log := secureParts(t, b.settings)
	err := ready(during)
	for range 3 { // a connection may take longer than the probe waits if the machine is busy
		if err == nil || err.Error() == f.says || err.Error() != "Redis does not answer" {
			break
		}
		err = ready(during)
	}
	if err == nil || err.Error() != f.says {
		t.Errorf("ready: %v, want %q", err, f.says)
	}
	if line := regexp.MustCompile(`(why|what)="` + f.says + `".* remedy=.`); !line.MatchString(log.String()) {
		t.Errorf("no %s in\n%s", line, log)
	}
	if words := "ERR DB index is out of range"; strings.HasSuffix(f.says, "refuses requests") &&
		!regexp.MustCompile(`remedy="[^"]*`+words).MatchString(log.String()) {
		t.Errorf("no %s in\n%s", words, log)
	}
	_, err = before.Store.Counts(t.Context()) // in a transaction, which a full Redis refuses although it only reads
	const refuses = "Redis refuses writes"
	if what, _ := before.explain(fmt.Errorf("x: %w", err)); err != nil && strings.HasPrefix(f.says, refuses) &&
		!strings.HasPrefix(what, refuses) {
		t.Errorf("a read fails with %v: %s", err, what)
	}
	if err := submit(before); (err == nil) != f.submit {
		t.Errorf("submit: %v", err)
	}

	repair()
	for submit(before) != nil {
		if t.Context().Err() != nil {
			t.Fatal("tasks cannot be submitted afterwards")
		}
	}
	after, _ := secureParts(t, b.settings)
	if err := ready(after); err != nil {
		t.Errorf("ready afterwards: %v", err)
	}
}
