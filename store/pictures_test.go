package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Pictures keep their order and do not outlive the task's record.
func TestPictures(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := task(1).ID
		data := [][]byte{[]byte("one"), {0, 1, 255}}
		h.ok(s.Pictures.Save(ctx, id, data))
		if ttl := s.redis.PTTL(ctx, s.key("pictures", id)).Val(); ttl <= 0 || ttl > unsubmitted {
			h.Errorf("without a task, kept for %s", ttl)
		}
		h.ok(s.redis.PExpire(ctx, s.key("pictures", id), time.Second).Err())
		h.ok(s.Pictures.Save(ctx, id, data)) // the message is interpreted again
		if ttl := s.redis.PTTL(ctx, s.key("pictures", id)).Val(); ttl <= time.Minute {
			h.Errorf("saved again, kept for %s", ttl)
		}
		h.put(s, task(1))
		h.ok(s.Pictures.Save(ctx, id, data))
		if ttl := s.redis.PTTL(ctx, s.key("pictures", id)).Val(); ttl != -1 {
			h.Errorf("of a task that waits, kept for %s", ttl)
		}
		if diff := cmp.Diff(data, must(s.Pictures.Read(ctx, id))); diff != "" {
			h.Error(diff)
		}
		if none, err := s.Pictures.Read(ctx, task(2).ID); err != nil || none != nil {
			h.Errorf("%v, %v", none, err)
		}
		if err := s.Pictures.Save(ctx, id, [][]byte{make([]byte, maxPictures), {1}}); !errors.Is(err, ErrTooLarge) {
			h.Errorf("%v", err)
		}
		h.ok(must(s.Claim(ctx, id, 0, "w")).End(ctx, nil))
		post, _, err := s.Outbox.Take(ctx, id)
		h.ok(err)
		h.ok(s.Outbox.MarkPosted(ctx, post))
		h.ok(s.Pictures.Save(ctx, id, data)) // the message is delivered again
		if ttl := s.redis.PTTL(ctx, s.key("pictures", id)).Val(); ttl <= 0 || ttl > s.cfg.Retention {
			h.Errorf("kept for %s", ttl)
		}
		_, err = s.Retry(ctx, id, nil)
		h.ok(err)
		if ttl := s.redis.PTTL(ctx, s.key("pictures", id)).Val(); ttl != -1 {
			h.Errorf("of a task that runs again, kept for %s", ttl)
		}
	})
}

// meanwhile is a bucket that does something during each Put.
type meanwhile struct {
	*bucket
	do func()
}

func (b meanwhile) Put(ctx context.Context, key string, data io.Reader, size int64) error {
	b.do()
	return b.bucket.Put(ctx, key, data, size)
}

// Pictures of a task that another process submits during a Save live as long as the task.
func TestPicturesBesideSubmit(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		rec, data := task(1), [][]byte{noise(100 << 10)}
		slow := h.store(Config{Objects: meanwhile{&bucket{Dir: h.dir()}, func() {
			h.ok(s.Pictures.Save(ctx, rec.ID, data))
			h.put(s, rec)
		}}})
		h.ok(slow.Pictures.Save(ctx, rec.ID, data))
		if ttl := s.redis.PTTL(ctx, s.key("pictures", rec.ID)).Val(); ttl != -1 {
			h.Errorf("kept for %s", ttl)
		}
		if got := must(s.Pictures.Read(ctx, rec.ID)); !bytes.Equal(got[0], data[0]) {
			h.Error("another picture is stored")
		}
	})
}
