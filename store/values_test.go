package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/store/objects"
)

// bucket is a directory that other machines share, and whose server can be away.
type bucket struct {
	*objects.Dir
	away          atomic.Bool
	puts, deletes atomic.Int32
}

var errAway = errors.New("connection refused")

func (b *bucket) Shared() bool { return true }

func (b *bucket) Put(ctx context.Context, key string, data io.Reader, size int64) error {
	if b.away.Load() {
		return errAway
	}
	b.puts.Add(1)
	return b.Dir.Put(ctx, key, data, size)
}

func (b *bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if b.away.Load() {
		return nil, errAway
	}
	return b.Dir.Get(ctx, key)
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if b.away.Load() {
		return errAway
	}
	b.deletes.Add(1)
	return b.Dir.Delete(ctx, key)
}

func (h *harness) dir() *objects.Dir {
	h.Helper()
	d, err := objects.OpenDir(h.TempDir(), false)
	h.ok(err)
	h.Cleanup(func() { _ = d.Close() })
	return d
}

// inRedis returns how many bytes a hash takes in Redis.
func (h *harness) inRedis(key string) (n int) {
	for _, value := range h.rdb.HGetAll(h.Context(), key).Val() {
		n += len(value)
	}
	return n
}

// Large values are in the objects, and Redis has little more than their keys.
func TestLargeValues(t *testing.T) {
	onRedis(t, func(h *harness) {
		ctx, b := h.Context(), &bucket{Dir: h.dir()}
		s := h.store(Config{Objects: b})
		id := h.submit(s, 1)
		large := noise(3 << 20)
		h.ok(s.Pictures.Save(ctx, "2"+id[1:], [][]byte{large, []byte("small")}))
		c := h.claim(s, id)
		for range 3 {
			h.ok(c.SaveCheckpoint(ctx, Checkpoint{
				Session: Session{ID: "s", Meta: json.RawMessage(`{}`), Data: large}, Work: large,
			}))
		}
		h.ok(c.SaveSession(ctx, Session{ID: "s", Data: large}))
		h.ok(c.SaveLog(ctx, "log", large))

		other := h.store(Config{Objects: b}) // of another machine
		if p := must(other.Checkpoint(ctx, id)); !bytes.Equal(p.Session.Data, large) || !bytes.Equal(p.Work, large) {
			h.Error("the checkpoint differs")
		}
		if ses := must(other.Threads.Session(ctx, c.Thread())); !bytes.Equal(ses.Data, large) {
			h.Error("the session differs")
		}
		if parts := must(other.Log(ctx, id, "log")); len(parts) != 1 || !bytes.Equal(parts[0].Data, large) {
			h.Error("the log differs")
		}
		if p := must(other.Pictures.Read(ctx, "2"+id[1:])); len(p) != 2 || !bytes.Equal(p[0], large) ||
			string(p[1]) != "small" {
			h.Error("the pictures differ")
		}
		for _, key := range []string{"checkpoint:" + id, "session:" + c.Thread(), "log:" + id, "pictures:2" + id[1:]} {
			if n := h.inRedis("errand:" + key); n == 0 || n > 1000 {
				h.Errorf("%s takes %d bytes of Redis", key, n)
			}
		}
		h.ok(c.End(ctx, nil))
		if n := b.deletes.Load(); n != 0 { // a replica may still have them
			h.Errorf("%d objects were deleted at once", n)
		}
		s.values.deleteReplaced(ctx, time.Now().Add(replacedFor))
		// Of the checkpoints none is left, and all else is.
		if puts, deletes := b.puts.Load(), b.deletes.Load(); puts != 6 || deletes != 3 {
			h.Errorf("%d objects were written and %d deleted, want 6 and 3", puts, deletes)
		}
	})
}

// What an object store that is away loses is at most the newest checkpoint.
func TestObjectsAreAway(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, b := h.Context(), &bucket{Dir: h.dir()}
		s := h.store(Config{Objects: b})
		id := h.submit(s, 1)
		c := h.claim(s, id)
		large, medium := noise(3<<20), noise(100<<10)
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Work: large}))
		h.ok(s.Doctor.Objects())
		b.away.Store(true)
		if err := c.SaveCheckpoint(ctx, Checkpoint{Work: noise(3 << 20)}); !errors.Is(err, ErrObjects) {
			h.Errorf("save = %v, want %v", err, ErrObjects)
		}
		if err := s.Doctor.Objects(); !errors.Is(err, ErrObjects) {
			h.Errorf("the state is %v, want %v", err, ErrObjects)
		}
		if _, err := s.Checkpoint(ctx, id); !errors.Is(err, ErrObjects) { // not as if there were none
			h.Errorf("read = %v, want %v", err, ErrObjects)
		}
		h.ok(c.SaveSession(ctx, Session{ID: "s", Data: medium})) // Redis can bear it
		if ses := must(s.Threads.Session(ctx, c.Thread())); !bytes.Equal(ses.Data, medium) {
			h.Error("the session differs")
		}
		if err := c.SaveLog(ctx, "log", medium); !errors.Is(err, ErrObjects) {
			h.Errorf("save log = %v, want %v", err, ErrObjects)
		}
		b.away.Store(false)
		if _, err := s.Checkpoint(ctx, id); !errors.Is(err, ErrObjects) { // it is not asked again yet
			h.Errorf("read = %v, want %v", err, ErrObjects)
		}
		s.values.reading.until = time.Time{}
		if p := must(s.Checkpoint(ctx, id)); !bytes.Equal(p.Work, large) {
			h.Error("the checkpoint before is gone")
		}
	})
}

// A step that Redis loses in a fail-over leaves the value before it, whose object is still there.
func TestReplacedValueOfAReplica(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, b := h.Context(), &bucket{Dir: h.dir()}
		s := h.store(Config{Objects: b})
		id := h.submit(s, 1)
		c := h.claim(s, id)
		first := noise(1 << 20)
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Work: first}))
		h.ok(c.SaveSession(ctx, Session{ID: "s", Data: first}))
		keys := []string{"errand:checkpoint:" + id, "errand:session:" + c.Thread()}
		replica := []map[string]string{h.rdb.HGetAll(ctx, keys[0]).Val(), h.rdb.HGetAll(ctx, keys[1]).Val()}
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Work: noise(1 << 20)}))
		h.ok(c.SaveSession(ctx, Session{ID: "s", Data: noise(1 << 20)}))
		for i, key := range keys {
			h.ok(h.rdb.HSet(ctx, key, replica[i]).Err())
		}
		if p := must(s.Checkpoint(ctx, id)); !bytes.Equal(p.Work, first) {
			h.Error("the checkpoint differs")
		}
		if ses := must(s.Threads.Session(ctx, c.Thread())); !bytes.Equal(ses.Data, first) {
			h.Error("the session differs")
		}
	})
}

// Pictures that are refused write no object, and those that are saved again write none twice.
func TestObjectsOfPictures(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, b := h.Context(), &bucket{Dir: h.dir()}
		s := h.store(Config{Objects: b})
		if err := s.Pictures.Save(ctx, "1", [][]byte{noise(5 << 20), noise(5 << 20)}); !errors.Is(err, ErrTooLarge) {
			h.Errorf("save = %v, want %v", err, ErrTooLarge)
		}
		for range 2 {
			h.ok(s.Pictures.Save(ctx, "1", [][]byte{noise(1 << 20), noise(2 << 20)}))
		}
		if puts := b.puts.Load(); puts != 2 {
			h.Errorf("%d objects were written, want 2", puts)
		}
	})
}

// A failure stops the calls for awayFor, and a caller that gives up is no failure.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		calls := 0
		call := func(ctx context.Context, err error) error {
			return b.try(ctx, func() error { calls++; return err })
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_ = call(cancelled, context.Canceled)
		for range 3 {
			if err := call(t.Context(), errAway); !errors.Is(err, ErrObjects) || !errors.Is(err, errAway) {
				t.Errorf("error = %v", err)
			}
		}
		if calls != 2 {
			t.Errorf("%d calls, want the cancelled one and one more", calls)
		}
		<-time.After(awayFor)
		if err := call(t.Context(), nil); err != nil || calls != 3 {
			t.Errorf("after %s: %d calls, %v", awayFor, calls, err)
		}
	})
}

// Without shared objects, values of up to 1 MiB reach other machines through Redis, and larger ones do not.
func TestLocalObjects(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		here, there := h.store(Config{Objects: h.dir()}), h.store(Config{Objects: h.dir()})
		id := h.submit(here, 1)
		c := h.claim(here, id)
		for size, portable := range map[int]bool{1<<20 - 1000: true, 2 << 20: false} {
			want := noise(size)
			h.ok(c.SaveCheckpoint(ctx, Checkpoint{Work: want}))
			if p := must(here.Checkpoint(ctx, id)); !bytes.Equal(p.Work, want) {
				h.Errorf("%d bytes differ on their machine", size)
			}
			if p, err := there.Checkpoint(ctx, id); portable && (err != nil || !bytes.Equal(p.Work, want)) ||
				!portable && !errors.Is(err, ErrDamaged) {
				h.Errorf("%d bytes on another machine: %d bytes, %v", size, len(p.Work), err)
			}
		}
		picture := noise(2 << 20) // a front door saves it for a worker
		h.ok(here.Pictures.Save(ctx, "2"+id[1:], [][]byte{picture}))
		if got := must(there.Pictures.Read(ctx, "2"+id[1:])); len(got) != 1 || !bytes.Equal(got[0], picture) {
			h.Error("a picture does not reach another machine")
		}
	})
}

// A step that was refused leaves no object.
func TestRefusedValueIsDiscarded(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, b := h.Context(), &bucket{Dir: h.dir()}
		s := h.store(Config{Objects: b})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Return(ctx, Wait{}))
		if err := c.SaveCheckpoint(ctx, Checkpoint{Work: noise(1 << 20)}); !errors.Is(err, ErrStale) {
			h.Errorf("save = %v, want %v", err, ErrStale)
		}
		if puts, deletes := b.puts.Load(), b.deletes.Load(); puts != 1 || deletes != 1 {
			h.Errorf("%d objects were written and %d deleted", puts, deletes)
		}
	})
}
