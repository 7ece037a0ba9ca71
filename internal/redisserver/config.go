package redisserver

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Config says what to run. Path is required, everything else has a usable zero value.
type Config struct {
	Path       string    // the redis-server binary, as [Find] returns it
	Dir        string    // where the append-only file lives; required with AppendOnly
	Password   string    // empty = a fresh random one, which [Server.URL] tells
	AppendOnly bool      // keep what is written, in Dir
	Fsync      string    // appendfsync: always, everysec or no; empty = everysec
	Log        io.Writer // the server's own log; written to from one goroutine; nil = nowhere
}

// Find looks for redis-server on PATH.
func Find() (path string, ok bool) {
	path, err := exec.LookPath("redis-server")
	return path, err == nil
}

// text is the configuration file. It goes to the server's stdin rather than into a file: there is nothing to protect or to remove.
func (c Config) text(port int) string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s %s\n", key, quote(fmt.Sprint(value))) }
	line("bind", "127.0.0.1")
	line("port", port)
	line("requirepass", c.Password)
	line("daemonize", "no")
	line("dir", c.Dir)
	line("save", "") // no snapshots: either the append-only file or nothing
	line("appendonly", yesNo(c.AppendOnly))
	line("appendfsync", c.Fsync)
	line("maxmemory-policy", "noeviction") // any other policy drops live tasks, asynq's as well as ours (asynq#799, asynq#1144)
	return b.String()
}

// quote writes s so that Redis reads back exactly s, whatever bytes a password or a path holds.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch ch := s[i]; {
		case ch == '"' || ch == '\\':
			b.WriteByte('\\')
			b.WriteByte(ch)
		case ch < ' ' || ch > '~':
			fmt.Fprintf(&b, `\x%02x`, ch)
		default:
			b.WriteByte(ch)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}
