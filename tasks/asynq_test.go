package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// TestQueueOfAsynq compares what Submit and Enqueue store in asynq's queues with what asynq's own client stores for the
// same deliveries, byte for byte. errand writes them itself, because a task and its delivery have to be stored
// together.
func TestQueueOfAsynq(t *testing.T) {
	t.Parallel()
	ours, theirs := newFleet(t), newFleet(t)
	client := asynq.NewClientFromRedisClient(theirs.redis())
	enqueue := func(id, class string, n int, at time.Time) {
		t.Helper()
		_, err := client.Enqueue(asynq.NewTask(taskType, []byte(id)), asynq.TaskID(DeliveryID(id, n)),
			asynq.Queue(class), asynq.Retention(retention),
			asynq.Timeout(ours.queue.timeout), asynq.MaxRetry(1<<31-1), asynq.ProcessAt(at))
		if err != nil {
			t.Fatal(err)
		}
	}
	now, later := time.Now().Add(-time.Second), time.Now().Add(time.Hour)

	first := ours.task("a", "now")
	ours.submit(first)
	enqueue(first.ID, first.Class, 0, now)
	postponed := ours.task("b", "later")
	postponed.NotBefore = later
	ours.submit(postponed)
	enqueue(postponed.ID, postponed.Class, 0, later)
	for n, at := range []time.Time{now, later} {
		if err := ours.queue.Enqueue(t.Context(), first.ID, Review, n+1, at); err != nil {
			t.Fatal(err)
		}
		enqueue(first.ID, Review, n+1, at)
	}
	ours.desk.policy.Repository = func(string) (Repository, bool) { return Repository{Pool: "gpu"}, true }
	pooled := ours.task("c", "in a pool")
	pooled.Repo = "acme/api"
	ours.submit(pooled)
	enqueue(pooled.ID, "gpu."+pooled.Class, 0, now)
	got, want := ours.asynqKeys(), theirs.asynqKeys()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("%s:\n got %q\nwant %q", key, got[key], want[key])
		}
		delete(got, key)
	}
	for key, value := range got {
		t.Errorf("asynq does not write %s: %q", key, value)
	}

	// A second Submit of a stored task, and a second Enqueue, add nothing.
	before := ours.asynqKeys()
	ours.submit(first)
	if err := ours.queue.Enqueue(t.Context(), first.ID, Review, 1, now); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, ours.asynqKeys()) {
		t.Error("a repeated delivery was added")
	}
}

// asynqKeys returns the values of asynq's keys, but for the clock.
func (f *fleet) asynqKeys() map[string]string {
	f.Helper()
	client, values := f.redis(), map[string]string{}
	keys, err := client.Keys(f.Context(), "asynq:*").Result()
	if err != nil {
		f.Fatal(err)
	}
	for _, key := range keys {
		var value any
		switch kind := client.Type(f.Context(), key).Val(); kind {
		case "hash":
			fields := client.HGetAll(f.Context(), key).Val()
			if since, ok := fields["pending_since"]; ok && len(since) != len("1700000000000000000") {
				f.Errorf("%s: pending_since is %q, not nanoseconds", key, since)
			}
			delete(fields, "pending_since")
			value = fields
		case "list":
			value = client.LRange(f.Context(), key, 0, -1).Val()
		case "set":
			value = slices.Sorted(slices.Values(client.SMembers(f.Context(), key).Val()))
		case "zset":
			value = client.ZRangeWithScores(f.Context(), key, 0, -1).Val()
		default:
			f.Fatalf("%s is a %s", key, kind)
		}
		values[key] = fmt.Sprint(value)
	}
	return values
}

// TestRequestsOfAsynq checks that the requests of a real server are told apart.
func TestRequestsOfAsynq(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	seen := make(chan string, 1000)
	server := f.queue.Server("", 1, requests(seen), time.Second, slog.New(slog.DiscardHandler))
	if err := server.Start(asynq.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	defer server.Stop()
	missing := map[string]bool{}
	for _, class := range Classes {
		for _, what := range []string{"dequeue ", "forward "} {
			missing[what+class] = true
		}
	}
	for len(missing) > 0 {
		select {
		case what := <-seen:
			delete(missing, what)
		case <-t.Context().Done():
			t.Fatalf("not seen: %v", missing)
		}
	}
}

// TestOtherRequests checks that a script with other keys, such as the one that deletes what is pending, is passed as it is.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	for _, args := range [][]any{
		{"evalsha", "sha", 1, "asynq:{a}:pending", "asynq:{a}:t:"},
		{"evalsha", "sha", 4, "asynq:{a}:active", "asynq:{a}:lease", "asynq:{a}:pending", "asynq:{a}:t:x"},
		{"evalsha", "sha", 4, "asynq:{a}:scheduled", "asynq:{a}:pending", "x", "y"},
		{"evalsha", "sha", 1, "asynq:{a}:retry", "asynq:{a}:t:"},
		{"get", "x", 4, "asynq:{a}:pending"},
	} {
		if what, queue := RequestOf(redis.NewCmd(t.Context(), args...)); what != Other {
			t.Errorf("%v: %v of %q", args, what, queue)
		}
	}
}

// requests notes the requests of an asynq server, and passes them.
type requests chan<- string

func (r requests) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r requests) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r requests) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		what, class := RequestOf(cmd)
		if name := map[Request]string{Dequeue: "dequeue ", Forward: "forward "}[what]; name != "" {
			select {
			case r <- name + class:
			default:
			}
		}
		return next(ctx, cmd)
	}
}
