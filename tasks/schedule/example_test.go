package schedule

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A front door that starts one task a day. Any number of them may do the same.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		panic(err)
	}
	source, err := New(Config{Memory: s.Memos, Schedules: []Schedule{
		{
			Name: "report", When: "every day at 07:00 Europe/Berlin", Prompt: "Sum up yesterday's commits.",
			Repo: "acme/api", Profile: agent.Read,
		},
	}})
	if err != nil {
		panic(err)
	}
	desk := tasks.NewDesk(s, tasks.NewQueue(s, client, time.Hour), tasks.Policy{}, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := source.Listen(ctx, http.NewServeMux(), desk); err != nil {
		panic(err)
	}
	<-ctx.Done()
}
