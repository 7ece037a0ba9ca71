package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// scriptFiles are the steps that touch more than one key. The first lines of each file describe its arguments and
// replies.
//
//go:embed scripts/*.lua
var scriptFiles embed.FS

// loadScripts returns all scripts by file name without .lua, each preceded by the parts of common.lua that it needs.
// All stores of a process share them; they are read-only.
var loadScripts = sync.OnceValues(func() (map[string]*redis.Script, error) {
	const dir = "scripts"
	common, err := scriptFiles.ReadFile(dir + "/common.lua")
	if err != nil {
		return nil, fmt.Errorf("read scripts: %w", err)
	}
	files, err := scriptFiles.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read scripts: %w", err)
	}
	scripts := map[string]*redis.Script{}
	for _, f := range files {
		text, err := scriptFiles.ReadFile(dir + "/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("read scripts: %w", err)
		}
		scripts[strings.TrimSuffix(f.Name(), ".lua")] = redis.NewScript(link(string(common), string(text)))
	}
	return scripts, nil
})

var (
	defined = regexp.MustCompile(`^local (?:function )?(\w+(?:, \w+)*)`) // the names that a piece of common.lua defines
	remark  = regexp.MustCompile(`--.*`)
	word    = regexp.MustCompile(`\w+`)
)

// link prepends the definitions of common that a script uses, directly or indirectly. Redis executes a script from its
// first line at every call, and all of common would cost more than most scripts do. A definition begins at the left
// margin and uses only earlier ones.
func link(common, script string) string {
	used := map[string]bool{}
	use := func(code string) {
		for _, w := range word.FindAllString(remark.ReplaceAllString(code, ""), -1) {
			used[w] = true
		}
	}
	use(script)
	pieces := strings.Split(common, "\nlocal ")
	for _, piece := range slices.Backward(pieces[1:]) {
		piece = "local " + piece + "\n"
		names := strings.Split(defined.FindStringSubmatch(piece)[1], ", ")
		if slices.ContainsFunc(names, func(name string) bool { return used[name] }) {
			use(piece)
			script = piece + script
		}
	}
	return script
}

// replicated are the steps that wait for Config.Replicas: what someone outside is told after them has to stay true.
var replicated = []string{"submit", "amend", "answer", "cancel", "retry", "pushing", "end", "endwaiting", "restore"}

// run executes one script in one round trip, or two if Redis does not have the script yet. It returns Redis' errors
// and the script's refusals, and [ErrNotReplicated] for a step that is in replicated.
func (s *db) run(ctx context.Context, name string, args ...any) (reply, error) {
	args = append([]any{s.key.prefix}, args...)
	var cmd *redis.Cmd
	if s.cfg.Replicas > 0 && slices.Contains(replicated, name) {
		var err error
		if cmd, err = s.runReplicated(ctx, s.scripts[name], args); err != nil {
			return nil, err
		}
	} else {
		cmd = s.scripts[name].Run(ctx, s.redis, nil, args...)
	}
	values, err := cmd.Slice()
	if err != nil {
		return nil, err
	}
	r := reply(values)
	return r, verdict(r)
}

// replicaLimit bounds the wait for replicas, within the client's timeouts.
const replicaLimit = time.Second

// runReplicated executes a script and waits until enough replicas have its writes, and so all earlier ones. They are
// one pipeline, because WAIT is about the connection's own writes.
func (s *db) runReplicated(ctx context.Context, script *redis.Script, args []any) (cmd *redis.Cmd, err error) {
	call := script.EvalSha
	for {
		var confirmed *redis.Cmd
		_, err = s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			cmd, confirmed = call(ctx, p, nil, args...), p.Do(ctx, "WAIT", s.cfg.Replicas, replicaLimit.Milliseconds())
			return nil
		})
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			call = script.Eval
			continue
		}
		if err != nil {
			return nil, err
		}
		if n, err := confirmed.Int(); err != nil || n < s.cfg.Replicas {
			return nil, fmt.Errorf("%w: %d of %d", ErrNotReplicated, n, s.cfg.Replicas)
		}
		return cmd, nil
	}
}

// reply is a script's reply: a word, then strings, then perhaps a record.
type reply []any

func (r reply) text(i int) string {
	if i >= len(r) {
		return ""
	}
	s, _ := r[i].(string)
	return s
}

func (r reply) number(i int) int {
	n, _ := strconv.Atoi(r.text(i))
	return n
}

func (r reply) record(id string, i int) Record {
	flat, _ := r[i].([]any)
	fields := make(map[string]string, len(flat)/2)
	for j := 0; j+1 < len(flat); j += 2 {
		fields[reply(flat).text(j)] = reply(flat).text(j + 1)
	}
	return decode(id, fields)
}

// micros returns a time as it is stored: Unix microseconds, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(s string) time.Time {
	n, _ := strconv.ParseInt(s, 10, 64)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// The errors that callers may have to distinguish. They are wrapped, so use errors.Is.
var (
	ErrNotFound = errors.New("not found") // no such record, session, checkpoint
	// claimed by another, or an earlier task of the thread comes first
	ErrBusy       = errors.New("thread is busy")
	ErrRunning    = errors.New("already running")     // by a worker that may be dead; the reconciler handles it
	ErrEnded      = errors.New("already ended")       // nothing left to do
	ErrBegun      = errors.New("the task was begun")  // claimed or absorbed: an agent may know the request
	ErrNotEnded   = errors.New("not ended")           // only an ended task can be retried
	ErrUnposted   = errors.New("not posted")          // the final message, which absorbed tasks share
	ErrStale      = errors.New("stale")               // an older delivery, fence or lease
	ErrSpent      = errors.New("taken for an answer") // the message was used as an answer and cannot be a task
	ErrNoQuestion = errors.New("no question is open")
	ErrTooLarge   = errors.New("too large") // the caller's data; nothing was stored
	// a checkpoint, session or topic differs from what was saved
	ErrDamaged = errors.New("damaged")
	// for [Watch].Lost: the claim cannot be trusted any more
	ErrOutage = errors.New("redis did not answer for too long")

	// ErrNotReplicated means that a step is done, but fewer replicas of Redis than Config.Replicas confirmed it in
	// time. The step may be repeated.
	ErrNotReplicated = errors.New("too few replicas of Redis have confirmed the step")
)

// wrapf returns err with what failed in front, such as "claim 1700000000000000-chat-x", or nil if err is nil.
func wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// NotDue refuses to start a task before its time.
type NotDue struct {
	At time.Time // when it is due, by this process' clock
}

// Error implements error.
func (e *NotDue) Error() string {
	return fmt.Sprintf("not due before %s", e.At.UTC().Format(time.RFC3339Nano))
}

// OpenQuestion is returned by [Store.Submit] for a message that may be an answer, if the thread's running task has
// asked something.
type OpenQuestion struct{ ID string }

// Error implements error.
func (e *OpenQuestion) Error() string { return "task " + e.ID + " waits for an answer" }

// verdict returns the error for the first word of a script's reply, or nil for success.
func verdict(r reply) error {
	switch status := r.text(0); status {
	case "ok", "no", "created", "exists":
		return nil
	case "notfound":
		return ErrNotFound
	case "busy":
		return ErrBusy
	case "running":
		return ErrRunning
	case "ended":
		return ErrEnded
	case "begun":
		return ErrBegun
	case "notended":
		return ErrNotEnded
	case "unposted":
		return ErrUnposted
	case "stale":
		return ErrStale
	case "spent":
		return ErrSpent
	case "openquestion":
		return &OpenQuestion{ID: r.text(1)}
	case "noquestion":
		return ErrNoQuestion
	case "held":
		return &Held{At: fromMicros(r.text(1)), Interval: time.Duration(r.number(2)) * time.Microsecond, Why: r.text(3)}
	case "full":
		return &Full{Blocked{Scope: r.text(1), Runs: r.number(2), Max: r.number(3), Place: r.number(4)}}
	case "overbudget":
		return &OverBudget{Spending: spending(r.text(1), r.text(2), r.text(4)), Reserved: usd(r.text(3))}
	case "notdue":
		return &NotDue{At: fromMicros(r.text(1))}
	default:
		return fmt.Errorf("unknown reply %q", status)
	}
}
