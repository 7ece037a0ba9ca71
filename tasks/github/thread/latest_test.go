package thread

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestLatestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := ShowLatest(ctx, time.Second, nil, func(context.Context, string) error { return nil })
		cancel()
		<-l.writer.Done() // or the bubble is deadlocked
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
