package redisserver

import (
	"fmt"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// writer hands every write to itself.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestForTestServes(t *testing.T) {
	t.Parallel()
	var addr string
	t.Run("one test", func(t *testing.T) {
		c := connect(t, ForTest(t))
		addr = c.Options().Addr
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
	if err := connect(t, "redis://"+addr).Ping(t.Context()).Err(); err == nil {
		t.Error("the server outlives its test")
	}
}

// failing records the failure of a test and ends it.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()           {}
func (f *failing) Fatal(args ...any) { f.said = fmt.Sprint(args...); panic(f) }

func TestForTestSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("ERRAND_TEST_REDIS", "")
	f := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		ForTest(f)
	}()
	if want := "redis-server is missing: run make setup (or apt-get install redis-server)"; f.said != want {
		t.Errorf("said %q, want %q", f.said, want)
	}
}
