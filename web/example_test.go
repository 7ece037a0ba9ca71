package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/web"
)

// Console, API and queue pages of a fleet on one address, behind a token.
func Example() {
	options := &redis.Options{Addr: "localhost:6379"}
	client := redis.NewClient(options)
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		panic(err)
	}
	h, err := web.New(web.Config{
		Token: "a-long-random-token",
		Desk:  desk.New(s, queue.New(s, client, time.Hour), rights.Policy{}, slog.New(slog.DiscardHandler)),
		Store: s, Redis: asynq.RedisClientOpt{Addr: options.Addr},
		Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	server := &http.Server{Addr: "localhost:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		panic(err)
	}
}
