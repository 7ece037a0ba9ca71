package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A start that hangs, as on a file system that has gone away, ends with its run's context: nothing ran, and nothing is
// left of it.
func TestStartObeysItsContext(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	b := newBench(t, "talk", func(c *Config) {
		c.Sandbox = SandboxBwrap
		c.Getenv = func(name string) string { return map[string]string{"PATH": bin + ":" + os.Getenv("PATH")}[name] }
	})
	// Works when it is tried out, and comes as far as a child when a run is started.
	script := fmt.Sprintf("#!/bin/bash\n[[ ${*: -1} == --version ]] && exit\nexec 9>%q\nsleep 1000 &\necho up >&9\nwait\n", filepath.Join(b.dir, "alive"))
	if err := os.WriteFile(filepath.Join(bin, "bwrap"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	alive, err := os.OpenFile(filepath.Join(b.dir, "alive"), os.O_RDWR, 0) // not waiting for a writer
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		_, _ = io.ReadFull(alive, make([]byte, 1))
		_ = alive.Close()
		stop(errors.New("the worker shuts down"))
	}()
	before := &Session{ID: "s", Data: []byte("{}\n")}
	if res := b.run(t, ctx, Spec{Resume: before}, &host{}); res.Outcome != Stopped || res.Session.ID != before.ID ||
		res.Turns != 0 {
		t.Errorf("result = %+v", res)
	}
	b.gone(t)
}
