package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
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

// A run that is stopped ends although a program that its start tries out hangs.
func TestStopWhileAProgramHangs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *Config, hanging string){
		"keeper": func(c *Config, hanging string) { c.Keeper = hanging },
		"sandbox": func(c *Config, hanging string) {
			c.Sandbox = SandboxBwrap
			bin := filepath.Dir(hanging)
			_ = os.Symlink(hanging, filepath.Join(bin, "bwrap"))
			c.Getenv = func(name string) string { return map[string]string{"PATH": bin}[name] }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hanging := filepath.Join(t.TempDir(), "hanging")
			copyProgram(t, fake, hanging)
			if err := syscall.Mkfifo(hanging+".started", 0o600); err != nil {
				t.Fatal(err)
			}
			started, err := os.OpenFile(hanging+".started", os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer started.Close()
			b := newBench(t, "talk", func(c *Config) { change(c, hanging) })
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan Result, 1)
			go func() { ended <- b.run(t, ctx, Spec{}, &host{}) }()
			_, _ = io.ReadFull(started, make([]byte, 1))
			stop()
			select {
			case res := <-ended:
				if res.Outcome != Stopped {
					t.Errorf("result = %+v", res)
				}
			case <-time.After(time.Minute): // the program has two
				t.Fatal("the run waits for it")
			}
			b.gone(t)
		})
	}
}

// A program that is tried out and hangs ends with the worker that tried it.
func TestHangingProgramEndsWithItsWorker(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	// It hangs inside a sandbox, with a descriptor from outside.
	inside := "#!/bin/sh\n[ \"$1\" = --version ] && exec cat /dev/zero >&9\nexec 9>\"$0.started\" " + bwrap + " \"$@\"\n"
	for _, part := range []string{"cli", "keeper", "sandbox", "inside"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			hanging := filepath.Join(dir, "hanging")
			if part == "inside" {
				makeProgram(t, hanging, []byte(inside))
			} else {
				copyProgram(t, fake, hanging)
			}
			if err := errors.Join(syscall.Mkfifo(hanging+".started", 0o600),
				os.Symlink(hanging, filepath.Join(dir, "bwrap"))); err != nil {
				t.Fatal(err)
			}
			worker := exec.Command("/proc/self/exe")
			worker.Env = append(os.Environ(), "AGENT_TEST_MODE=try "+part, "AGENT_TEST_DIR="+dir)
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			started, err := os.Open(hanging + ".started") // waits for it
			if err != nil {
				t.Fatal(err)
			}
			defer started.Close()
			_, err = io.ReadFull(started, make([]byte, 1))
			if err := errors.Join(err, worker.Process.Kill()); err != nil {
				t.Fatal(err)
			}
			_ = worker.Wait()
			_ = started.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, started); err != nil { // ends with it
				t.Errorf("it is alive: %v", err)
			}
		})
	}
}

// tryMain tries the parts of a run out, of which one hangs.
func tryMain(hanging string) int {
	dir := os.Getenv("AGENT_TEST_DIR")
	program := filepath.Join(dir, "hanging")
	c := Config{CLI: "/bin/false", LogDir: dir, Sandbox: SandboxNone}
	switch hanging {
	case "cli":
		c.CLI = program
	case "keeper":
		c.Keeper = program
	case "sandbox", "inside":
		c.Sandbox = SandboxBwrap
		c.Getenv = func(name string) string { return map[string]string{"PATH": dir}[name] }
	}
	r, err := New(c)
	if err != nil {
		return 1
	}
	fmt.Print(r.Health(context.Background()))
	return 0
}
