package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// The demo is not silent for long while it waits, and says nothing more after the reminders' end.
func TestRemind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := &bytes.Buffer{}
		tl := &teller{w: said, start: time.Now(), said: make(chan struct{}, 1)}
		tl.await("a")
		stop := tl.remind()
		<-time.After(silence - time.Second)
		tl.say("slack", "a")
		<-time.After(2*silence + time.Second)
		tl.say("slack", "b")
		tl.await("c")
		<-time.After(silence + time.Second)
		stop()
		<-time.After(time.Minute)
		const want = "   7.0s  slack    a\n  15.0s  errand   waiting for a, 8s so far\n" +
			"  23.0s  errand   waiting for a, 16s so far\n  24.0s  slack    b\n" +
			"  32.0s  errand   waiting for c, 8s so far\n"
		if said.String() != want {
			t.Errorf("it says\n%swant\n%s", said, want)
		}
	})
}
