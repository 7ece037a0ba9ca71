package keeper

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The worker's death should shorten a stop that is under way, because the thread must not look free while its CLI
// lives.
func TestWorkerDiesDuringAStop(t *testing.T) {
	t.Parallel()
	c, err := new(Program).Start(t.Context(), Order{
		Path: "/bin/bash", Args: []string{"bash", "-c", "trap '' TERM; echo up; while :; do read -t 100 <> <(:); done"}, Dir: "/",
		OrphanGrace: 50 * time.Millisecond,
	}, Sandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.Stdout, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	c.Term(time.Hour)
	_ = c.control.Close()
	<-c.done
	if c.Exit.Signal != "SIGKILL" {
		t.Errorf("exit = %+v", c.Exit)
	}
}

// Processes that were left behind and ended by themselves are reaped as they come, not killed at the end, however
// many they are.
func TestManyOrphans(t *testing.T) {
	t.Parallel()
	c, err := new(Program).Start(t.Context(), Order{
		Path: "/bin/bash", Args: []string{"bash", "-c", "for ((i = 0; i < 1000; i++)); do (true &); done"}, Dir: "/", OrphanGrace: time.Second,
	}, Sandbox{})
	if err != nil {
		t.Fatal(err)
	}
	<-c.done
	if c.Err != nil || c.Exit.Code != 0 || c.Exit.Stuck != 0 || c.Exit.Swept > 100 {
		t.Errorf("exit = %+v, %v", c.Exit, c.Err)
	}
}

// A mark is that of a dead worker only if that is certain.
func TestMarksOfTheDead(t *testing.T) {
	t.Parallel()
	place, ok := pidNamespace()
	own := WorkerMark()
	if !ok || !strings.HasPrefix(own, place+"/"+strconv.Itoa(os.Getpid())+"/") {
		t.Fatalf("own mark %q, place %q", own, place)
	}
	boot, _, _ := strings.Cut(place, "/")
	for mark, dead := range map[string]bool{
		own:                               false,
		own + "0":                         true, // the process ID was given out again
		place + "/4194305/1":              true, // beyond the largest process ID
		"another/" + own:                  false,
		boot + "/1/" + "4194305/1":        false, // of another namespace
		place:                             false,
		place + "/":                       false,
		place + "/-1/1":                   false, // not a group of processes, nor all of them
		place + "/0/1":                    false,
		place + "/" + strconv.Itoa(1<<30): false,
		"":                                false,
	} {
		if isDead(mark, place) != dead {
			t.Errorf("mark %q: dead %t, want %t", mark, !dead, dead)
		}
	}
}
