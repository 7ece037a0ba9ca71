package assemble

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
)

// A caller of the desk should return when it gives up, even if Redis accepts connections and does not answer.
func TestDeskAnswersWhoGivesUp(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	why := errors.New("enough")
	ctx, giveUp := context.WithCancelCause(t.Context())
	go func() {
		conn, err := hole.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1))
		giveUp(why)
		<-t.Context().Done()
	}()
	p, err := New(config.Config{Redis: config.Redis{URL: config.RedisURL("redis://" + hole.Addr().String())}},
		slog.New(slog.DiscardHandler), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	_, err = p.Desk.Submit(ctx, tasks.Task{
		ID: tasks.NewID(time.Unix(1_700_000_000, 0), "test", "one"), Source: "test", Thread: "test/one",
		Class: tasks.Interactive, Profile: agent.Read, Prompt: "do it",
	})
	if !errors.Is(err, why) {
		t.Errorf("err = %v, want %v", err, why)
	}
}
