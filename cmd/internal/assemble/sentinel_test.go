package assemble

import (
	"log/slog"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/fake/redissentinel"
)

// A process finds the master through the Sentinels, follows a fail-over, and its queue pages do so, too.
func TestSentinel(t *testing.T) {
	t.Parallel()
	r, err := redissentinel.Start(t.Context(), t.TempDir())
	t.Cleanup(r.Stop)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(config.Config{Redis: config.Redis{URL: config.RedisURL(r.URL())}},
		slog.New(slog.DiscardHandler), Options{})
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
	for ; queue.Err() != nil && t.Context().Err() == nil; queue = p.Redis.SAdd(t.Context(), "asynq:queues",
		"interactive") {
		t.Log(queue.Err())
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	inspector := asynq.NewInspector(queuesRedis{p})
	if names, err := inspector.Queues(); err != nil || len(names) != 1 {
		t.Errorf("queues %v, %v", names, err)
	}
}
