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
	"syscall"
	"time"
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
	return startOn(ctx, cfg, freePort)
}

// startOn tries several ports in turn.
func startOn(ctx context.Context, cfg Config, port func(context.Context) (int, error)) (*Server, error) {
	var err error
	for range attempts {
		var s *Server
		s, err = start(ctx, cfg, port)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
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
	cmd.Env = []string{} // our environment has secrets, and Redis needs none of it
	cmd.SysProcAttr = attributes()
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
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: s.addr(), Path: "/0"}
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

func (s *Server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// freePort returns a free port. Another process may take it before the server binds it.
func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
