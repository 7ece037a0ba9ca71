package store

import (
	"embed"
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
