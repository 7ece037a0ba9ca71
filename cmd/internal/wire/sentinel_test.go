package wire

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redissentinel"
)

// A process finds the master through the Sentinels, follows a fail-over, and its queue pages do so, too.
func TestSentinel(t *testing.T) {
	t.Parallel()
	r, err := redissentinel.Start(t.Context(), t.TempDir())
	t.Cleanup(r.Stop)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(config.Config{Redis: config.Redis{URL: config.RedisURL(r.URL())}}, slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.checkStart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	queue := p.Redis.SAdd(t.Context(), "asynq:queues", "interactive")
	for ; queue.Err() != nil && t.Context().Err() == nil; queue = p.Redis.SAdd(t.Context(), "asynq:queues", "interactive") {
		t.Log(queue.Err())
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	inspector := asynq.NewInspector(queuesRedis{p.Config.Redis.URL})
	if names, err := inspector.Queues(); err != nil || len(names) != 1 {
		t.Errorf("queues %v, %v", names, err)
	}
}

// Everything that a URL can set for one Redis also counts with Sentinels.
func TestSentinelsKeepParameters(t *testing.T) {
	t.Parallel()
	o, sentinels, err := config.RedisURL("rediss+sentinel://u:p@one,two/3?master=m&protocol=2&client_name=c&max_retries=4&min_retry_backoff=5s" +
		"&max_retry_backoff=6s&dial_timeout=7s&read_timeout=8s&write_timeout=9s&pool_fifo=true&pool_size=10&pool_timeout=11s&min_idle_conns=12" +
		"&max_idle_conns=13&max_active_conns=14&max_concurrent_dials=15&pipeline_pool_size=16&pipeline_read_buffer_size=17&pipeline_write_buffer_size=18" +
		"&conn_max_idle_time=19s&conn_max_lifetime=20s&conn_max_lifetime_jitter=1s&skip_verify=true").Options()
	if err != nil {
		t.Fatal(err)
	}
	from, to := reflect.ValueOf(*o), reflect.ValueOf(*failover(o, *sentinels))
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if got := to.FieldByName(name); !from.Field(i).IsZero() && got.IsValid() && got.IsZero() {
			t.Errorf("%s is lost", name)
		}
	}
	if got := failover(o, *sentinels); got.PoolSize != 10 || got.ConnMaxLifetime != 20*time.Second || !got.TLSConfig.InsecureSkipVerify {
		t.Errorf("%+v", got)
	}
}
