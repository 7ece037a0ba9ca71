package redistest

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

func ping(t *testing.T, address string) error {
	t.Helper()
	opt, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opt)
	defer c.Close()
	return c.Ping(t.Context()).Err()
}

func TestStartServesOneTest(t *testing.T) {
	t.Parallel()
	var address string
	t.Run("one test", func(t *testing.T) {
		address = Start(t)
		if err := ping(t, address); err != nil {
			t.Error(err)
		}
	})
	if err := ping(t, address); err == nil {
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

func TestStartSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("ERRAND_TEST_REDIS", "")
	f := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		Start(f)
	}()
	if want := "redis-server is missing: run make setup (or apt-get install redis-server)"; f.said != want {
		t.Errorf("said %q, want %q", f.said, want)
	}
}
