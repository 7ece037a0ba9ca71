package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workerSteps are a worker's steps with a clone, each in a process that can be killed.
func workerSteps() map[string]func(ctx context.Context, w *Workspace) error {
	again := api
	again.Keep = true
	kept := func(ctx context.Context, w *Workspace, do func(c Clone) error) error {
		c, err := w.Checkout(ctx, again)
		if err == nil {
			err = do(c)
		}
		return err
	}
	return map[string]func(ctx context.Context, w *Workspace) error{
		"checkout": func(ctx context.Context, w *Workspace) error {
			_, err := w.Checkout(ctx, api)
			return err
		},
		"keep": func(ctx context.Context, w *Workspace) error { return kept(ctx, w, func(Clone) error { return nil }) },
		"restore": func(ctx context.Context, w *Workspace) error {
			return kept(ctx, w, func(c Clone) error {
				b, err := w.Snapshot(ctx, c, bundleLimit)
				if err == nil {
					_, err = w.Restore(ctx, again, b)
				}
				return err
			})
		},
		"publish": func(ctx context.Context, w *Workspace) error {
			return kept(ctx, w, func(c Clone) error {
				// Recorded before the push, as in the store.
				p, ours := publication(), filepath.Join(w.cfg.Dir, "ours")
				known, err := os.ReadFile(ours)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				p.Ours = strings.Fields(string(known))
				p.Permit = func(_ context.Context, commit string) error {
					return os.WriteFile(ours, append(known, commit+"\n"...), 0o600)
				}
				_, err = w.Publish(ctx, c, *p)
				return err
			})
		},
		"discard": func(ctx context.Context, w *Workspace) error {
			list, err := w.Threads(ctx)
			for _, t := range list {
				if err == nil {
					_, err = w.Save(ctx, t.Name, savedTo(w))
				}
				if err == nil {
					_, err = w.Discard(ctx, t)
				}
			}
			mirrors, merr := w.Mirrors(ctx)
			err = errors.Join(err, merr)
			for _, m := range mirrors {
				if err == nil {
					_, err = w.DiscardMirror(ctx, m)
				}
			}
			return errors.Join(err, w.Empty())
		},
	}
}

func savedTo(w *Workspace) string { return filepath.Join(w.cfg.Dir, "saved") }

// victim is a worker that is killed repeatedly in a step.
type victim struct {
	*testing.T
	o    *origin
	w    *Workspace // of this process, on the same root
	step string
}

// run runs the step and reports whether it finished. It is killed at the git call with number at, or after limit.
func (v victim) run(at int, limit time.Duration) bool {
	v.Helper()
	v.Logf("killed at call %d of git, or after %v", at, limit)
	exe, err := os.Executable()
	if err != nil {
		v.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(v.Context(), limit)
	defer cancel()
	cmd, said := exec.CommandContext(ctx, exe), new(bytes.Buffer)
	cmd.Stderr = said
	cmd.WaitDelay = patience // its git may still have the pipe
	cmd.Env = append(os.Environ(), asWorker+"="+v.step+" "+v.w.cfg.Dir+" "+v.o.root,
		killerStarts+"="+filepath.Join(v.TempDir(), "starts"), fmt.Sprintf("%s=%d", killerAt, at))
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signaled() {
		return false
	}
	if err != nil && ctx.Err() == nil {
		v.Fatalf("after a kill at call %d it fails: %v: %s", at-1, err, said)
	}
	return err == nil
}

// A worker that is killed at a git call, or at any moment in between, loses no work. Its clone is complete or missing,
// and its leftovers are gone once the step has succeeded.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for step := range workerSteps() {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w := o.files()
			v := victim{t, o, w, step}
			c := w.mirror(api.Repo).clone(w.cloneDir(api.Thread, api.Repo))
			work := step != "checkout"
			prepare := func(n int) {
				o.commit("main", map[string]string{"next.txt": fmt.Sprintln(n)})
				if !work {
					return
				}
				if _, err := w.Enter(api.Thread); err != nil {
					t.Fatal(err)
				}
				if !exists(c.dir) { // the first time, or discarded
					checkout(t, w, api)
				}
				write(t, c.dir+"/work.txt", fmt.Sprintln(n))
			}
			check := func(n int) {
				t.Helper()
				if !work {
					v.wholeOrNotThere(c)
					return
				}
				for _, dir := range []string{c.dir, c.beside("broken")} { // or, while it is restored, set aside
					if got, _ := os.ReadFile(dir + "/work.txt"); string(got) == fmt.Sprintln(n) {
						return
					}
				}
				if !v.saved(n) {
					t.Fatalf("after %d: the work is gone", n)
				}
			}
			n, limit, took := 1, patience, time.Duration(0)
			for ; ; n += 4 + rand.N(8) { // each test run takes others
				prepare(n)
				began := time.Now()
				lived := v.run(n, limit)
				took = time.Since(began)
				check(n)
				if lived {
					break
				}
			}
			if n < 3 {
				t.Fatalf("killed only %d times", n-1)
			}
			for range 3 {
				n++
				prepare(n)
				v.run(0, rand.N(took))
				check(n)
			}
			prepare(n)
			if !v.run(0, limit) {
				t.Fatal("the step did not finish")
			}
			check(n)
			v.nothingIsLeft(c)
		})
	}
}

// wholeOrNotThere checks that a clone is complete or missing.
func (v victim) wholeOrNotThere(c clone) {
	v.Helper()
	if !exists(c.dir) {
		return
	}
	if out := testGit(v.T, c.dir, "status", "--porcelain", "--ignored"); out != "" {
		v.Fatalf("the clone is incomplete: %s", out)
	}
}

// saved reports whether the saved files contain the work of step n.
func (v victim) saved(n int) bool {
	v.Helper()
	bundles, err := filepath.Glob(filepath.Join(savedTo(v.w), "work-*"+bundleExt))
	if err != nil {
		v.Fatal(err)
	}
	for _, name := range bundles {
		into := v.TempDir()
		testGit(v.T, into, "clone", "--quiet", "--bare", v.o.bare, ".")
		testGit(v.T, into, "fetch", "--quiet", name, "refs/*:refs/saved/*")
		if got, err := tryGit(v.T, into, "show", "refs/saved/errand/work:work.txt"); err == nil &&
			got == fmt.Sprint(n) {
			return exists(strings.TrimSuffix(name, bundleExt) + patchExt)
		}
	}
	return false
}

func (v victim) nothingIsLeft(c clone) {
	v.Helper()
	left := slices.DeleteFunc(leftovers(v.T, c.dir), func(name string) bool {
		return name == ".api~broken" && v.step == "restore"
	})
	if len(left) > 0 {
		v.Errorf("beside the clone: %v", left)
	}
	for _, name := range []string{
		c.mirror.beside("tmp"), c.mirror.beside("broken"), v.w.trash(), filepath.Join(savedTo(v.w), ".saving"),
	} {
		if exists(name) {
			v.Errorf("%s is left", name)
		}
	}
	if exists(c.mirror.dir) == (v.step == "discard") {
		v.Errorf("mirror: %t", exists(c.mirror.dir))
	}
	if v.step != "discard" {
		testGit(v.T, c.mirror.dir, "fsck", "--strict")
	}
	if locks, err := filepath.Glob(c.mirror.dir + "/*.lock"); err != nil || len(locks) > 0 {
		v.Errorf("locks: %v, %v", locks, err)
	}
}
