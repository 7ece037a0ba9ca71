package redisserver

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Config describes the server to run. Path is required; everything else has a usable zero value.
type Config struct {
	Path       string    // the redis-server binary, as [Find] returns it
	Dir        string    // directory of the append-only file; required with AppendOnly
	Password   string    // empty = a random one, which [Server.URL] contains
	AppendOnly bool      // persist data in Dir
	Fsync      string    // appendfsync: always, everysec or no; empty = everysec
	Log        io.Writer // the server's log; written from one goroutine; nil = discarded
}

// Find looks for redis-server on PATH.
func Find() (path string, ok bool) {
	path, err := exec.LookPath("redis-server")
	return path, err == nil
}

// text returns the configuration file. It goes to the server's stdin, so no file has to be protected or removed.
func (c Config) text(port int) string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s %s\n", key, quote(fmt.Sprint(value))) }
	line("bind", "127.0.0.1")
	line("port", port)
	line("requirepass", c.Password)
	line("daemonize", "no")
	line("dir", c.Dir)
	line("save", "") // no snapshots: the append-only file or nothing
	line("appendonly", yesNo(c.AppendOnly))
	line("appendfsync", c.Fsync)
	line("maxmemory-policy", "noeviction") // any other policy drops live tasks of errand and asynq (asynq#799, asynq#1144)
	return b.String()
}

// quote quotes s for Redis' configuration, with any bytes that a password or a path may contain.
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
