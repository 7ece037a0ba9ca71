package redisserver

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// findForTest is redistest.Find, whose package imports this one.
func findForTest() (path string, ok bool) {
	if path = os.Getenv("ERRAND_TEST_REDIS"); path != "" {
		return path, true
	}
	return Find()
}

func itoa(n int) string { return strconv.Itoa(n) }

// writer hands every write to itself.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func begin(t *testing.T, cfg Config) *Server {
	t.Helper()
	path, ok := findForTest()
	if !ok {
		t.Fatal("redis-server is missing: run make setup (or apt-get install redis-server)")
	}
	cfg.Path = path
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

func connect(t *testing.T, rawURL string) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opt)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStartGivesASafeServer(t *testing.T) {
	t.Parallel()
	s := begin(t, Config{})
	c := connect(t, s.URL())
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatalf("ping: %v", err)
	}
	for key, want := range map[string]string{
		"maxmemory-policy": "noeviction", "save": "", "appendonly": "no", "bind": "127.0.0.1",
	} {
		got, err := c.ConfigGet(t.Context(), key).Result()
		if err != nil || got[key] != want {
			t.Errorf("config %s = %q (%v), want %q", key, got[key], err, want)
		}
	}

	u, _ := url.Parse(s.URL())
	password, _ := u.User.Password()
	if len(password) < 20 {
		t.Errorf("the generated password %q is short", password)
	}
	u.User = nil
	if err := connect(t, u.String()).Ping(t.Context()).Err(); err == nil {
		t.Error("it answers without a password")
	}
	u.User = url.UserPassword("", "wrong")
	if err := connect(t, u.String()).Ping(t.Context()).Err(); err == nil {
		t.Error("it answers to a wrong password")
	}
	ps, err := exec.Command("ps", "-o", "args=", "-p", itoa(s.Pid())).Output()
	if err != nil || !strings.Contains(string(ps), "redis-server") || strings.Contains(string(ps), password) {
		t.Errorf("argument list %q (%v), want redis-server without its password", ps, err)
	}
}

func TestWhatWasWrittenSurvivesAStop(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a \"strange\" \\ dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: dir, Password: "p\"w \\x00\n@:/é", AppendOnly: true, Fsync: "always"}
	first := begin(t, cfg)
	if err := connect(t, first.URL()).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := begin(t, cfg)
	if got, err := connect(t, second.URL()).Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Errorf("after a restart k = %q (%v), want v", got, err)
	}
}

func TestStopIsFinal(t *testing.T) {
	t.Parallel()
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		s := begin(t, Config{})
		for range 2 {
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		assertGone(t, s)
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s := begin(t, Config{})
		// Stopped in the kernel's sense it cannot obey a TERM.
		if err := exec.Command("kill", "-STOP", itoa(s.Pid())).Run(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Stop(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("stop = %v, want that it was killed", err)
		}
		assertGone(t, s)
	})
}

func assertGone(t *testing.T, s *Server) {
	t.Helper()
	if c, err := net.Dial("tcp", s.Addr()); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
	if err := exec.Command("kill", "-0", itoa(s.Pid())).Run(); err == nil {
		t.Errorf("process %d is still there", s.Pid())
	}
}

func TestATakenPortIsTriedAgain(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	go func() { // a stranger that hangs up
		for {
			c, err := taken.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	path, _ := findForTest()
	tries := 0
	s, err := startOn(t.Context(), Config{Path: path, Dir: t.TempDir(), Password: "pw", Fsync: "no"},
		func(ctx context.Context) (int, error) {
			if tries++; tries == 1 {
				return taken.Addr().(*net.TCPAddr).Port, nil
			}
			return FreePort(ctx)
		})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop(t.Context()) }()
	if tries != 2 {
		t.Errorf("%d ports were tried, want 2", tries)
	}
}

func TestAFailedStartSaysWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	path, _ := findForTest()
	if _, err := Start(t.Context(), Config{Path: path, Dir: "/does/not/exist"}); err == nil ||
		!strings.Contains(err.Error(), "No such file") {
		t.Errorf("start = %v, want the server's own words", err)
	}
	if _, err := Start(t.Context(), Config{Path: "/does/not/exist"}); err == nil {
		t.Error("a missing binary started")
	}
	if _, err := Start(t.Context(), Config{Path: path, AppendOnly: true}); err == nil {
		t.Error("an append-only file without a directory was accepted")
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pid := ""
	hung := writer(func(p []byte) { pid += string(p); cancel() })
	if _, err := Start(ctx, Config{Path: os.Args[0], Log: hung}); !errors.Is(err, context.Canceled) {
		t.Errorf("start of a server that never listens = %v, want %v", err, context.Canceled)
	}
	if pid = strings.TrimSpace(pid); pid == "" {
		t.Fatal("it said nothing")
	}
	if err := exec.Command("kill", "-0", pid).Run(); err == nil {
		t.Errorf("process %s is still there", pid)
	}
}

func TestDiesWithItsParent(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanEnv+"=1")
	stdin, err := parent.StdinPipe() // held open: EOF would end it
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil || u.Host == "" {
		t.Fatalf("parent said %q", line)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = parent.Process.Kill()
	_ = parent.Wait()
	// The server closes our connection when it ends; without the death signal this read would block.
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the server talks instead of ending")
	}
	if c, err := net.Dial("tcp", u.Host); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
}
