// Package redisserver runs a real redis-server as a child process: the database of `worker -standalone` and of tests.
//
// It promises that the server listens on loopback only, requires a password, never evicts a key, is ready when [Start]
// returns, and dies with this process, even on kill -9 (on Linux; on other systems it survives). The password is in no
// file and no argument list, because the whole configuration goes in by stdin. The process is reaped when
// [Server.Stop] returns.
//
// It does not restart a server that died, and it does not replicate. If you need that, run your own Redis.
//
// All functions and methods may be called from any goroutine.
package redisserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// attempts is the number of ports to try. Another process may take the chosen port before the server binds it, but
// hardly five times in a row.
const attempts = 5

// errPortTaken makes the start try another port.
var errPortTaken = errors.New("port taken")

// Server is one running redis-server.
type Server struct {
	password string
	port     int
	process  *os.Process
	exited   chan struct{} // closed when the process is reaped
	exit     error         // result of the process; read only after exited is closed
	log      *tail
}

// Start runs a server on a free loopback port and returns when it answers. ctx bounds only the start: the server lives
// until [Server.Stop] or the end of this process. Reading a large append-only file may take as long as ctx allows;
// everything else has 10 s. An error contains the last lines of the server's log.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Path == "" {
		return nil, errors.New("start redis-server: no path to the binary")
	}
	if cfg.AppendOnly && cfg.Dir == "" {
		return nil, errors.New("start redis-server: an append-only file needs a directory")
	}
	cfg.Dir = cmp.Or(cfg.Dir, os.TempDir())
	cfg.Fsync = cmp.Or(cfg.Fsync, "everysec")
	cfg.Password = cmp.Or(cfg.Password, rand.Text())
	return startOn(ctx, cfg, FreePort)
}

// startOn tries several ports in turn.
func startOn(ctx context.Context, cfg Config, port func(context.Context) (int, error)) (*Server, error) {
	err := errPortTaken
	for try := 0; try < attempts && errors.Is(err, errPortTaken); try++ {
		var s *Server
		if s, err = start(ctx, cfg, port); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start redis-server: %w", err)
}

func start(ctx context.Context, cfg Config, port func(context.Context) (int, error)) (*Server, error) {
	p, err := port(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{password: cfg.Password, port: p, exited: make(chan struct{}), log: &tail{}}
	if err := s.spawn(cfg); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		stopped, cancel := context.WithCancel(context.Background())
		cancel() // kill at once: nothing was written yet
		_ = s.Stop(stopped)
		if said := s.log.String(); strings.Contains(said, "Address already in use") {
			return nil, errPortTaken
		} else if said != "" {
			err = fmt.Errorf("%w; it said:\n%s", err, said)
		}
		return nil, err
	}
	return s, nil
}

// spawn starts the process from a goroutine that keeps its OS thread until the child is gone. The kernel sends the
// parent-death signal when the *thread* that created the child ends, not the process, and Go ends threads at any time
// (golang/go#27505).
func (s *Server) spawn(cfg Config) error {
	cmd := exec.Command(cfg.Path, "-")
	cmd.Stdin = strings.NewReader(cfg.text(s.port))
	cmd.Stdout = io.Writer(s.log)
	if cfg.Log != nil {
		cmd.Stdout = io.MultiWriter(s.log, cfg.Log)
	}
	cmd.Stderr = cmd.Stdout
	cmd.Env = append([]string{}, cfg.Env...) // our environment has secrets, and Redis needs none of it
	// The server gets SIGTERM when this process dies, for any reason. It has its own process group, because Ctrl-C in a
	// terminal goes to the whole group and would stop the database under a worker that is still draining.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	cmd.WaitDelay = time.Second // the process that rewrites the append-only file has the same stdout

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err == nil {
			s.exit = cmd.Wait()
			close(s.exited)
		}
	}()
	return <-started
}

// URL returns the address with the password, in the form that go-redis and asynq parse.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: s.Addr(), Path: "/0"}
	return u.String()
}

// Pid returns the server's process ID.
func (s *Server) Pid() int { return s.process.Pid }

// Stop stops the server after it has written its data, kills it if ctx ends first, and returns when it is reaped. Stop
// may be called again, or after the server has died. An error means that the server had to be killed; it is gone in
// any case.
func (s *Server) Stop(ctx context.Context) error {
	// Ignore the error: if the process is gone, there is nothing to stop.
	_ = s.process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		return nil
	case <-ctx.Done():
	}
	_ = s.process.Kill()
	<-s.exited
	return fmt.Errorf("stop redis-server %d: killed: %w", s.process.Pid, context.Cause(ctx))
}

// Addr returns the host and the port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// FreePort returns a free port. Another process may take it before the server binds it.
func FreePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Config describes the server to run. Path is required; everything else has a usable zero value.
type Config struct {
	Path       string    // the redis-server binary, as [Find] returns it
	Dir        string    // directory of the append-only file; required with AppendOnly
	Password   string    // empty = a random one, which [Server.URL] contains
	AppendOnly bool      // persist data in Dir
	Fsync      string    // appendfsync: always, everysec or no; empty = everysec
	Log        io.Writer // the server's log; written from one goroutine; nil = discarded
	Env        []string  // the server's whole environment, for tests
}

// Find looks for redis-server or valkey-server on PATH.
func Find() (path string, ok bool) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
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
	line("appendonly", map[bool]string{true: "yes", false: "no"}[c.AppendOnly])
	line("appendfsync", c.Fsync)
	line("maxmemory-policy", "noeviction") // other policies drop live tasks (asynq#799, asynq#1144)
	return b.String()
}

// quote quotes s for Redis' configuration, with any bytes that a password or a path may contain.
func quote(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return `"` + b.String() + `"`
}

const (
	patience = 10 * time.Second      // for a server that does not answer at all
	between  = 2 * time.Millisecond  // between connects; a start takes about 10 ms
	answer   = 2 * time.Second       // for one AUTH and PING
	loading  = 20 * time.Millisecond // between pings while the server reads its append-only file
)

// ready waits until the server accepts its password. It returns an error if the server never will.
func (s *Server) ready(ctx context.Context) error {
	deadline := time.Now().Add(patience)
	for {
		err := s.ping(ctx)
		if err == nil {
			return nil
		}
		wait := between
		if redis.HasErrorPrefix(err, "LOADING") { // progress: the server still reads its file
			deadline, wait = time.Now().Add(patience), loading
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer for %s: %w", patience, err)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %w", cmp.Or(s.exit, errors.New("exit status 0")))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// ping authenticates and sends PING on a new connection. Only our server knows the password, so another program on the
// port does not pass.
func (s *Server) ping(ctx context.Context) error {
	dialer := net.Dialer{Timeout: answer}
	conn, err := dialer.DialContext(ctx, "tcp", s.Addr()) // not by the client, which would log a refused connection
	if err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		Password: s.password, ReadTimeout: answer, MaxRetries: -1, DisableIdentity: true,
	})
	defer c.Close()
	return c.Ping(ctx).Err()
}

// tail keeps the end of the server's log for the error of a failed start.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 2 << 10

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
