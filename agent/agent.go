package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Config says how a Runner runs the CLI. LogDir is required.
type Config struct {
	CLI        string            // path of the executable; empty: looked for by Find each time, so that it may be installed later
	LogDir     string            // where <id>.log and <id>.ndjson go
	TempDir    string            // parent of the runs' own directories; empty: the system's. Keep it short.
	BaseURL    string            // of the model; empty: the CLI's default
	Credential Credential        // for the model
	Env        map[string]string // further variables of the CLI; they are visible to the agent's tools
	Grace      time.Duration     // from the decision to stop a run to its KILL; 0: 15 s
	Redactor   *Redactor         // takes secrets out of logs and events; nil: none
	Log        *slog.Logger      // nil: nothing is logged

	Getenv func(string) string // the worker's environment; nil: os.Getenv
}

// defaultGrace is DESIGN's ERRAND_GRACE.
const defaultGrace = 15 * time.Second

// Runner runs the CLI. It is immutable and safe for concurrent use.
type Runner struct {
	cfg    Config
	log    *slog.Logger
	getenv func(string) string
	// patience for the CLI's first answer, for its exit after the session ended, and for the keeper beyond Grace; tests shorten them.
	startLimit, exitLimit, keeperLimit time.Duration
}

// New checks the configuration. It does not look at the CLI: see Health.
func New(c Config) (*Runner, error) {
	if c.LogDir == "" {
		return nil, errors.New("create runner: LogDir is empty")
	}
	r := &Runner{cfg: c, log: c.Log, getenv: c.Getenv, startLimit: time.Minute, exitLimit: 20 * time.Second, keeperLimit: keeperLimit}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.getenv == nil {
		r.getenv = os.Getenv
	}
	if r.cfg.Grace <= 0 {
		r.cfg.Grace = defaultGrace
	}
	if runtime.GOOS != "linux" {
		r.log.Warn("a process that daemonises itself can outlive its run on this system; use Linux in production")
	}
	return r, nil
}

// LogPath is where the log of a run is; ext is ".log" or ".ndjson".
func (r *Runner) LogPath(id, ext string) string { return filepath.Join(r.cfg.LogDir, id+ext) }

var (
	runID = regexp.MustCompile(`^[a-z0-9.-]{1,80}$`)
	// argument is what of a caller's may stand in the CLI's argument list, where everybody can read it: names, and nothing else.
	argument = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`)
)

// cli is the executable to run.
func (r *Runner) cli() (string, *Error) {
	path, err := Find(r.cfg.CLI, ".", r.getenv("PATH"))
	if e, ok := errors.AsType[*Error](err); ok {
		return "", e
	}
	return path, nil
}

// check finds what is wrong with a Spec before anything is started.
func (r *Runner) check(s Spec) *Error {
	if !runID.MatchString(s.ID) || s.ID[0] == '.' || s.ID[0] == '-' {
		return NewError(ClassInternal, fmt.Sprintf("run ID %q is not of the form [a-z0-9.-]{1,80}", s.ID))
	}
	if _, ok := tools[s.Profile]; !ok {
		return NewError(ClassInternal, fmt.Sprintf("profile %q is unknown", s.Profile))
	}
	for _, word := range []string{s.Model, s.Effort} {
		if word != "" && !argument.MatchString(word) {
			return NewError(ClassConfig, fmt.Sprintf("%q is not the name of a model or a level of effort", word))
		}
	}
	if s.Prompt.Text == "" {
		return NewError(ClassInternal, "the prompt is empty")
	}
	info, err := os.Stat(s.Dir)
	switch {
	case !filepath.IsAbs(s.Dir):
		return NewError(ClassWorkspace, fmt.Sprintf("working directory %q is not absolute", s.Dir))
	case err != nil:
		return NewError(ClassWorkspace, "working directory: "+err.Error())
	case !info.IsDir():
		return NewError(ClassWorkspace, "working directory "+s.Dir+" is not a directory")
	case unix.Access(s.Dir, unix.R_OK|unix.X_OK) != nil:
		return NewError(ClassWorkspace, "working directory "+s.Dir+" may not be read by this user")
	}
	return nil
}
