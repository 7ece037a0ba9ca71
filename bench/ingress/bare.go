package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
)

// bare is the limit: a handler that only enqueues what it receives, and checks neither sender nor duplicates.
func bare(out io.Writer) error {
	opt, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	if err != nil {
		return fmt.Errorf("parse REDIS_URL: %w", err)
	}
	client := asynq.NewClient(opt)
	defer client.Close()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(out, "listens at http://%s\n", l.Addr())
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err == nil {
				_, err = client.EnqueueContext(r.Context(), asynq.NewTask("event", body), asynq.Queue(queue))
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
			}
		}),
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
