package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/s3server"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// Names in the fakes.
const (
	repository   = "acme/chaos" // the one with pull requests
	withClone    = "C0CLONES"   // a channel that is about the repository
	withoutClone = "C0TALK"     // one that is about none
	bot          = "errand"     // on GitHub
)

// home is a repository with its channel and its pool.
type home struct{ repo, channel, pool string }

// homes are the repositories of as many pools. The default one also has the tasks without a repository.
func homes(pools int) []home {
	list := []home{{repository, withClone, poolName(0)}}
	for i := 1; i < pools; i++ {
		list = append(list, home{fmt.Sprintf("%s-%d", repository, i), fmt.Sprint(withClone, i), poolName(i)})
	}
	return list
}

// poolName is the name of a pool, counted from 0.
func poolName(i int) string {
	if i == 0 {
		return "default"
	}
	return fmt.Sprintf("pool-%d", i)
}

// home returns where a thread works that has a repository.
func (w *world) home(thread int) home { return w.homes[thread%len(w.homes)] }

// world is everything around errand: the services it talks to, each behind its weather, and the witness.
type world struct {
	dir     string // everything that is written is below it
	slack   *slackfake.Server
	github  *githubfake.Server
	witness *witness
	disk    *disk
	homes   []home
	sky     map[place]*weather
	closers []func()

	mu  sync.Mutex
	log *os.File // what was done when
}

func newWorld(set settings) (w *world, err error) {
	w = &world{sky: map[place]*weather{}, homes: homes(set.pools)}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(""))
		}
	}()
	// Short, because the paths of runs must be short, and private to this user.
	if w.dir, err = os.MkdirTemp("/tmp", "chaos-"); err != nil {
		return w, fmt.Errorf("make a directory: %w", err)
	}
	if w.log, err = os.Create(filepath.Join(w.dir, "chaos.log")); err != nil {
		return w, fmt.Errorf("make a log: %w", err)
	}
	if err := w.settle(set); err != nil {
		return w, err
	}
	if w.disk, err = newDisk(filepath.Join(w.dir, "state", "logs")); err != nil {
		return w, err
	}
	w.slack = slackfake.New(slackfake.Config{})
	if w.github, err = githubfake.New(githubfake.Config{Quiet: true, BotLogin: bot}); err != nil {
		return w, fmt.Errorf("start the fake GitHub: %w", err)
	}
	for _, h := range w.homes {
		owner, name, _ := strings.Cut(h.repo, "/")
		if _, err := w.github.CreateRepo(owner, name, map[string]string{"README.md": "chaos\n"}); err != nil {
			return w, fmt.Errorf("create the repository: %w", err)
		}
	}
	answers := modelfake.New()
	answers.Answer("", modelfake.Turn{Text: "Go on."})
	w.closers = append(w.closers, w.slack.Close, w.github.Close, answers.Close)
	services := map[place]string{inSlack: w.slack.URL(), inGitHub: w.github.URL(), model: answers.URL()}
	if set.s3 != "" {
		url, stop, err := s3server.Serve(set.s3, filepath.Join(w.dir, "s3"))
		if err != nil {
			return w, err
		}
		services[objects], w.closers = url, append(w.closers, stop)
	}
	for service, url := range services {
		if w.sky[service], err = newWeather(service, url, w.note); err != nil {
			return w, err
		}
		w.closers = append(w.closers, w.sky[service].close)
	}
	return w, nil
}

// settle writes the files that errand and the scripted CLI find their way by, and starts the witness.
func (w *world) settle(set settings) (err error) {
	if w.witness, err = newWitness(); err != nil {
		return err
	}
	program, err := os.ReadFile(set.cli)
	if err != nil {
		return fmt.Errorf("read the scripted CLI: %w (make chaos builds it)", err)
	}
	// Limits below the workers' slots, so that tasks compete for places, and budgets that cannot be used up.
	yaml, channels := "repositories:\n", "channels:\n"
	for _, h := range w.homes {
		yaml += fmt.Sprintf("  %s:\n    trusted: true\n", h.repo)
		if set.pools > 1 { // an earlier version does not know the key
			yaml += fmt.Sprintf("    pool: %s\n", h.pool)
		}
		channels += fmt.Sprintf("  %s:\n    repository: %s\n", h.channel, h.repo)
	}
	yaml += channels
	if set.drill {
		yaml += "limits:\n  repository: 1\n"
	} else {
		yaml += "limits:\n  repository: 9\n"
	}
	yaml += "budgets:\n  repository: 100000\n  day: 100000\n"
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{"claude", program, 0o700},
		{script.AddressFile, []byte(w.witness.addr()), 0o600},
		{"errand.yaml", []byte(yaml), 0o600},
	} {
		if err := os.WriteFile(filepath.Join(w.dir, f.name), f.data, f.mode); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	proc := filepath.Join(w.dir, script.ProcDir)
	if !set.once {
		if err := os.Symlink("/proc", proc); err != nil {
			return fmt.Errorf("show /proc: %w", err)
		}
	} else if err := os.Mkdir(proc, 0o700); err != nil { // each container mounts it there
		return fmt.Errorf("make a directory: %w", err)
	}
	for _, dir := range []string{"t", "home"} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), 0o700); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
	}
	return nil
}

// environment is what front door and workers have in common: the whole configuration, but for Redis and their
// addresses. Time limits are short, so that whatever hangs ends within the patience of the checks.
func (w *world) environment() []string {
	var env []string
	if s := w.sky[objects]; s != nil {
		env = []string{
			"ERRAND_OBJECTS=s3://fleet/chaos?region=us-east-1&path-style=true&endpoint=" + s.url,
			"AWS_ACCESS_KEY_ID=" + s3server.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3server.SecretKey,
		}
	}
	return append(env,

		"PATH="+os.Getenv("PATH"), "HOME="+filepath.Join(w.dir, "home"), "TMPDIR="+filepath.Join(w.dir, "t"),
		"ERRAND_CONFIG="+filepath.Join(w.dir, "errand.yaml"), "ERRAND_STATE_DIR="+filepath.Join(w.dir, "state"),
		"ERRAND_CLAUDE="+filepath.Join(w.dir, "claude"), "ERRAND_SANDBOX=none", "ERRAND_ALLOW_ROOT=true",
		"ERRAND_CONCURRENCY=8", "ERRAND_RUN_LIMIT=2m", "ERRAND_IDLE_LIMIT=40s",
		"ANTHROPIC_BASE_URL="+w.sky[model].url, "ANTHROPIC_API_KEY=sk-ant-chaos-key",
		"SLACK_API_URL="+w.sky[inSlack].url+"/api/", "SLACK_BOT_TOKEN=xoxb-test", "SLACK_SIGNING_SECRET=slack-secret",
		"GITHUB_API_URL="+w.sky[inGitHub].url+strings.TrimPrefix(w.github.APIURL(), w.github.URL()),
		"GITHUB_URL="+w.github.URL(), "GITHUB_TOKEN=ghp_test", "GITHUB_WEBHOOK_SECRET=github-secret",
	)
}

// note writes one line to chaos.log. It may be called from any goroutine.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// clear lets all services work from now on.
func (w *world) clear() {
	for _, s := range w.sky {
		s.clear()
	}
}

// close ends the services. It removes the directory, or moves the runs' logs to keep and keeps it.
func (w *world) close(keep string) error {
	for _, c := range w.closers {
		c()
	}
	if w.witness != nil {
		w.witness.close()
	}
	var errs []error
	if w.disk != nil {
		errs = append(errs, w.disk.remove(keep))
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	if keep == "" && w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}
