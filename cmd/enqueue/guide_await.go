package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/joho/godotenv"

	"github.com/errand-fleet/errand/internal/display"
)

// guidePause is the time between two looks at something that a person or a program is going to do.
const guidePause = 2 * time.Second

// await calls done until it reports true or fails, or the errand ends that the guide has started. It calls it no more
// once that is told to end.
func (g *guide) await(ctx context.Context, done func() (bool, error)) error {
	for {
		if g.told.Load() == nil {
			if ok, err := done(); ok || err != nil {
				return err
			}
		}
		select {
		case <-time.After(guidePause):
		case <-g.ended:
			if g.fault != nil {
				return g.fault
			}
			return *g.told.Load()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// awaitStart starts errand unless it runs, and waits for its front door.
func (g *guide) awaitStart(ctx context.Context) error {
	if runs, err := g.runs(ctx); runs || err != nil {
		return err
	}
	if g.noStart {
		printText(g.stderr, "guide start", nil)
	} else if err := g.start(ctx); err != nil {
		return fmt.Errorf("start errand: %w", err)
	}
	return g.await(ctx, func() (bool, error) { return g.runs(ctx) })
}

const (
	addressName = "ERRAND_HTTP_ADDR"
	tokenName   = "ERRAND_CONSOLE_TOKEN"
)

// runs reports whether a front door answers with the settings of .env, which the person may still change.
func (g *guide) runs(ctx context.Context) (bool, error) {
	env, err := godotenv.Read(filepath.Join(g.dir, ".env"))
	if err != nil {
		return false, fmt.Errorf("read .env: %w", err)
	}
	value := func(name string) string { return cmp.Or(env[name], g.getenv(name)) }
	if g.api, err = newAPIClient(value(addressName), value(tokenName)); err != nil {
		return false, err
	}
	return g.newest(ctx, &taskPage{})
}

// newest gets the newest task, and reports whether a front door answers. Only a refused token is an error: errand may
// start or restart.
func (g *guide) newest(ctx context.Context, page *taskPage) (answers bool, err error) {
	_, err = g.api.call(ctx, "GET /api/tasks?limit=1", nil, page)
	if refused, ok := errors.AsType[*apiError](err); ok && refused.status == http.StatusUnauthorized {
		return false, fmt.Errorf("another errand answers at %s: %w", g.api.base, err)
	}
	return err == nil, nil
}

// start starts the whole system in this terminal until Ctrl-C or the end of ctx. Of its log only warnings and errors
// are shown, unless .env says something else.
func (g *guide) start(ctx context.Context) error {
	path, err := exec.LookPath(program("worker"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "-standalone")
	// A second signal cuts its shutdown short, which only Ctrl-C may. Ctrl-C reaches it from here only.
	tell := func(s os.Signal) error {
		code := exitForSignal(s)
		first := g.told.CompareAndSwap(nil, &code)
		if s != os.Interrupt {
			if !first {
				return nil
			}
			s = syscall.SIGTERM
		}
		return cmd.Process.Signal(s)
	}
	cmd.Cancel = func() error { return tell(syscall.SIGTERM) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir, cmd.Stdout, cmd.Stderr = g.dir, g.world.stderr, g.world.stderr
	cmd.Env = append(g.inherited(), "ERRAND_LOG_LEVEL=warn")
	for name, value := range g.env {
		if value == "" { // the variable of the environment counts
			continue
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	signals, stop := g.notify()
	if err := cmd.Start(); err != nil {
		stop()
		return err
	}
	g.ended = make(chan struct{})
	go func() {
		defer close(g.ended)
		defer stop()
		if err := cmd.Wait(); err != nil || g.told.Load() == nil {
			g.fault = fmt.Errorf("errand has ended: %v", cmd.ProcessState)
		}
	}()
	go func() {
		for {
			select {
			case s := <-signals:
				_ = tell(s) // it may just have ended
			case <-g.ended:
				return
			}
		}
	}()
	return nil
}

// rivals are credentials of the environment, each with the variable of .env beside which errand would refuse it, or use
// it instead.
var rivals = map[string]string{
	"ANTHROPIC_API_KEY":       "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_OAUTH_TOKEN": "ANTHROPIC_API_KEY",
	"GITHUB_TOKEN":            "GITHUB_APP_ID",
}

// inherited returns the environment without the credentials that .env decides otherwise.
func (g *guide) inherited() []string {
	return slices.DeleteFunc(slices.Clone(g.environ), func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		rival := rivals[name]
		if value == "" || g.env[name] != "" || g.env[rival] == "" {
			return false
		}
		printText(g.stderr, "guide left out", map[string]string{"Name": name, "Rival": rival})
		return true
	})
}

// awaitTask waits for the first task and for its end, and then for that of the errand that the guide has started.
func (g *guide) awaitTask(ctx context.Context) error {
	printText(g.stderr, "guide mention", map[string]any{
		"App": g.app, "Slack": g.env["SLACK_BOT_TOKEN"] != "", "Name": g.name, "Repositories": g.repositories,
		"Begin": beginCommand(g.dir),
	})
	shown, kind := "", ""
	err := g.await(ctx, func() (bool, error) {
		var page taskPage
		if _, err := g.newest(ctx, &page); err != nil || len(page.Tasks) == 0 {
			return false, err
		}
		first := page.Tasks[0]
		if line := first.state() + ": " + display.Line(first.Title); line != shown {
			shown = line
			printf(g.stderr, "\n%s\n", line)
		}
		if first.Ending == nil {
			return false, nil
		}
		kind = first.Ending.Kind
		printText(g.stderr, "guide done", map[string]any{
			"Sentence": display.Line(first.comment()), "Console": g.api.base, "Started": g.ended != nil,
			"Begin": beginCommand(g.dir),
		})
		return true, nil
	})
	if err != nil {
		return err
	}
	if g.ended != nil {
		if <-g.ended; g.fault != nil {
			return g.fault
		}
	}
	return exitForEnding(kind)
}
