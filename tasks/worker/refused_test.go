package worker

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// refusals is a go-redis hook that notes when Redis has refused to store a text.
type refusals struct {
	text string
	seen chan struct{}
}

func (r refusals) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r refusals) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && strings.Contains(cmd.String(), r.text) {
			select {
			case r.seen <- struct{}{}:
			default:
			}
		}
		return err
	}
}

func (r refusals) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Redis refuses writes while a run ends. The ending is stored when it accepts them again, and posted once.
func TestEndingWhileRedisRefusesWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuse, accept []any }{
		"out of memory": {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		"too few replicas": {
			[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"},
		},
		"read-only replica": {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, started, proceed := newFleet(t), make(chan struct{}), make(chan struct{})
			f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
				started <- struct{}{}
				<-proceed
				r := answer("here you are")
				r.Model = "some-model" // is in its costs, the first step after it
				return r, nil
			}
			client, refused := f.redis(), refusals{"some-model", make(chan struct{}, 1)}
			client.AddHook(refused)
			f.worker(func(c *Config) { c.Store = f.open(store.Config{Redis: client}) })
			id := f.submit(f.task("a", "x"))
			<-started
			do := func(args []any) {
				t.Helper()
				if err := f.rdb.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			do(c.refuse)
			close(proceed)
			<-refused.seen
			if _, err := f.desk.Submit(t.Context(), f.task("b", "y")); err == nil {
				t.Error("a task was accepted")
			}
			do(c.accept)
			if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Text != "here you are" {
				t.Errorf("ending = %+v", e)
			}
			f.stopAll()
			if n := f.source.closes[id]; n != 1 || len(f.agent.specs()) != 1 {
				t.Errorf("%d final messages, %d runs", n, len(f.agent.specs()))
			}
		})
	}
}
