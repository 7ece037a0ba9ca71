// Package chat is the source of requests made to errand itself: by the HTTP API, and through it by the console and the
// command line. A message posted to /api/chat becomes a task, and its answer is streamed back as server-sent events.
//
// It promises that the first event names the task, so that a reader who is cut off can come back to it; that a closed
// connection cancels nothing; that tasks work only in local directories below the configured roots, wherever links
// lead; and that a failure of Redis is reported within 3 s. It does not promise that the streamed words are the answer:
// a run that was interrupted repeats some of them, and words that Redis could not store in time are missing. The result
// of the last event is the answer.
//
// Nothing here authenticates: the front door requires the console's token. A Source may be used from any
// goroutine; Listen is called once.
package chat

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
)

// Config is what the source needs. Its zero value works and opens no local directory.
type Config struct {
	Dirs      []string         // roots of the local directories that tasks may work in, absolute
	StateDir  string           // errand's state, which may be in a blocked directory such as /var
	Heartbeat time.Duration    // interval of the comments that keep a silent stream open; 0: 15 s
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger     // nil: discard
}

// submitLimit keeps the promise of an answer within 3 s while Redis hangs.
const submitLimit = 2500 * time.Millisecond

// Source is the chat. Make it with New.
type Source struct {
	cfg         Config
	submitLimit time.Duration // only tests change it
	waitCheck   time.Duration // likewise
	offerLimit  time.Duration // likewise
}

var _ tasks.Source = (*Source)(nil)

// New makes the source.
func New(cfg Config) *Source {
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{cfg: cfg, submitLimit: submitLimit, waitCheck: waitCheck, offerLimit: offerLimit}
}

// Name is the prefix of the threads and the word in the IDs of the tasks that come from here.
func (s *Source) Name() string { return "chat" }

// Post submits a form, whose fields have the names of the API's, and its pictures. Its fields repo and also may name
// further repositories after commas. thread is what the next form names to continue. An *InputError says what to
// change.
func (s *Source) Post(
	ctx context.Context, d *desk.Desk, form url.Values, pictures []tasks.Picture,
) (r desk.Receipt, thread string, err error) {
	repo, also := tasks.SplitRepositories(form.Get("repo") + "," + form.Get("also"))
	t, p := s.task(request{
		Message: strings.ReplaceAll(form.Get("message"), "\r\n", "\n"), // as forms are sent
		Repo:    repo, Repos: also, Branch: form.Get("branch"), ProjectPath: form.Get("projectPath"),
		Directory: form.Get("directory"),
		Agent:     form.Get("agent"), Thread: form.Get("thread"), Model: form.Get("model"), Effort: form.Get("effort"),
		Budget: amount(form.Get("budget")), Timeout: form.Get("timeout"), Profile: form.Get("profile"),
		Plan: form.Get("plan") != "",
	}, people.Actor(ctx))
	if p != nil {
		return r, "", &tasks.InputError{Sentence: p.Detail}
	}
	t.Pictures = pictures
	r, err = s.submit(ctx, d, t)
	return r, strings.TrimPrefix(t.Thread, s.Name()+"/"), err
}

// system tells the agent about its reader.
const system = "You are talking with one person through errand, in a console or a terminal. They read along while " +
	"you work, but may be away: if a wrong guess would waste the work, ask with the tool ask_user; otherwise decide, " +
	"and state your assumption. Answer in Markdown."

// Brief passes on the words as they are. They come from a trusted person, so a /command or an @agent at their beginning
// counts as in the CLI.
func (s *Source) Brief(_ context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	if t.Dir != "" {
		// Check again: the directory may have been replaced by a link since the front door checked, and this may be
		// another machine with other roots.
		dir, err := s.Directory(t.Dir)
		if err == nil && dir != t.Dir {
			err = fmt.Errorf("%s is a different directory now", t.Dir)
		}
		if err != nil {
			return tasks.Brief{}, &tasks.InputError{Sentence: fmt.Sprintf("Cannot work in this directory: %v.", err)}
		}
	}
	prompt := agent.Message{Text: t.Prompt, Agent: t.Options.Agent}
	return tasks.Brief{Prompt: prompt, System: system, Keep: true}, nil
}

// Open returns a report that does nothing: a chat has no thread outside errand.
func (s *Source) Open(context.Context, tasks.Task) (tasks.Report, error) {
	return tasks.NoReport{}, nil
}

// Capabilities are local directories, and to speak: the worker has stored the words already, and the question is among
// the events and is answered through the API or in the console.
func (s *Source) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{
		Say:       func(context.Context, tasks.Task, string) error { return nil },
		Ask:       func(context.Context, tasks.Task, tasks.Question) error { return nil },
		Directory: s.Directory,
	}
}

// blocked are the system's directories. They stay closed even if an operator opens a directory above them.
var blocked = []string{
	"/etc", "/usr", "/var", "/root", "/proc", "/sys", "/dev", "/boot", "/bin", "/sbin", "/lib", "/lib32",
	"/lib64", "/libx32",
}

// Directory returns the real path of a local directory that tasks may work in. The error says which rule the path
// breaks.
func (s *Source) Directory(path string) (string, error) {
	switch {
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("%q is not absolute", path)
	case slices.Contains(strings.Split(path, "/"), ".."):
		return "", fmt.Errorf("%q has .. in it", path)
	}
	// Check before any look-up, and the real path only where ERRAND_DIRS opens it, so that the answer does not reveal
	// what exists elsewhere or where links lead.
	if err := s.open(filepath.Clean(path)); err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(path)
	if err != nil || !slices.ContainsFunc(s.cfg.Dirs, func(root string) bool { return s.opens(resolved(root), dir) }) {
		return "", fmt.Errorf("%q does not exist, or is not in a directory that ERRAND_DIRS opens", path)
	}
	if err := s.open(dir); err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%q is not a directory", path)
	}
	return dir, nil
}

// opens reports whether a root opens a directory. errand's state has the logs of all users, and git directories that
// the host works in: a root above it does not open it; only a root inside it does.
func (s *Source) opens(root, dir string) bool {
	state := resolved(s.cfg.StateDir)
	private := s.cfg.StateDir != "" && within(dir, state) && (root == state || !within(root, state))
	return within(dir, root) && !private
}

// open returns an error for a directory of the system. Resolved paths count, too: /bin is a link into /usr or, on a
// Mac, /etc one into /private.
func (s *Source) open(dir string) error {
	if state := s.cfg.StateDir; state != "" && (within(dir, absolute(state)) || within(dir, resolved(state))) {
		return nil
	}
	for _, b := range blocked {
		if within(dir, b) || within(dir, resolved(b)) {
			return fmt.Errorf("%q is in %s, which belongs to the system", dir, b)
		}
	}
	return nil
}

// within reports whether path is dir itself or lies below it; both are clean. /variety is not within /var.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// absolute is a configured path without following links.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// resolved is the real path of a configured path; a path that does not exist is returned as it is.
func resolved(path string) string {
	if dir, err := filepath.EvalSymlinks(absolute(path)); err == nil {
		return dir
	}
	return absolute(path)
}
