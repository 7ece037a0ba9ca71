package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
)

// Only the holder of the claim runs a thread's task. Its ending is stored once.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, _, err := s.Submit(ctx, store.Record{
		ID: "1700000000000000-chat-x", Thread: "chat/x", Class: "interactive", Task: []byte(`{}`),
	}); err != nil {
		panic(err)
	}
	claim, err := s.Claim(ctx, "1700000000000000-chat-x", 0, "worker-1")
	if err != nil {
		panic(err)
	}
	_, err = s.Claim(ctx, "1700000000000000-chat-x", 0, "worker-2")
	fmt.Println("a second worker is refused:", errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrRunning))
	fmt.Println("ended:", claim.End(ctx, []byte(`{"kind":"answered"}`)) == nil)
	// Output:
	// a second worker is refused: true
	// ended: true
}
