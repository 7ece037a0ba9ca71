package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/errand-fleet/errand/store/objects"
)

// The kinds of values, as objects are named.
const (
	checkpoint = "checkpoint"
	session    = "session"
	log        = "log"
	picture    = "picture"
)

// ErrObjects means that the object store does not answer, so that a value cannot be read or saved now.
var ErrObjects = errors.New("the object store does not answer")

// Large values (sessions, checkpoints, logs, pictures) are compressed. Small ones stay in Redis, where every machine
// reads them in the round trip that it makes anyway; others are in Config.Objects, and Redis has their key. A value in
// Redis is one of these letters and what follows.
const (
	packed  = "z" // the compressed value itself
	pointer = "o" // the key of the object that has the compressed value
)

const (
	// inlineShared is the size of values that stay in Redis although all machines share the objects: a live task may
	// take some 60 KB there.
	inlineShared = 16 << 10
	// inlineKept is the same for values that stay for days or weeks after a task has ended, of which there are many.
	inlineKept = 2 << 10
	// inlineLocal is the size of values that stay in Redis because no other machine could read the object. Larger ones
	// would delay everybody else: a value of 8 MiB takes Redis 38 ms.
	inlineLocal = 1 << 20
	// objectLimit bounds a request to the object store.
	objectLimit = 30 * time.Second
	// maxUnpacked bounds what an object unpacks to, in bytes: more than any value has.
	maxUnpacked = 64 << 20
)

// codecs are shared, because they hold large buffers.
var codecs = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2))
	if err != nil {
		panic(err) // only for wrong options
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecoderConcurrency(2))
	if err != nil {
		panic(err)
	}
	return encoder, decoder
})

// keep stores a value of a kind and an owner, and returns what belongs into Redis. If the object store does not answer,
// a value that Redis can bear stays there.
func (s *db) keep(ctx context.Context, kind, owner string, data []byte) ([]byte, error) {
	encoder, _ := codecs()
	value := encoder.EncodeAll(data, []byte(packed))
	bucket, limit := s.cfg.Objects, inlineLocal
	switch {
	case bucket == nil, kind == picture && !bucket.Shared(): // a front door saves it, and a worker reads it
		return value, nil
	case bucket.Shared() && kind == checkpoint:
		limit = inlineShared
	case bucket.Shared():
		limit = inlineKept
	}
	if len(value) <= limit {
		return value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, objectLimit)
	defer cancel()
	key := kind + "/" + objectName(owner) + "/" + strings.ToLower(rand.Text())
	err := bucket.Put(ctx, key, bytes.NewReader(value[len(packed):]), int64(len(value)-len(packed)))
	switch {
	case err == nil:
		return []byte(pointer + key), nil
	case len(value) <= inlineLocal:
		return value, nil
	default:
		return nil, fmt.Errorf("%w: %w", ErrObjects, err)
	}
}

// fetch returns the value of which Redis has this. It returns [ErrDamaged] if it is not what was kept, or if its object
// is gone or on another machine, and [ErrObjects] if the object store does not answer.
func (s *db) fetch(ctx context.Context, value string) ([]byte, error) {
	inline, isPacked := strings.CutPrefix(value, packed)
	data := []byte(inline)
	if key, ok := strings.CutPrefix(value, pointer); ok && s.cfg.Objects != nil {
		ctx, cancel := context.WithTimeout(ctx, objectLimit)
		defer cancel()
		body, err := s.cfg.Objects.Get(ctx, key)
		if errors.Is(err, objects.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(body, maxUnpacked))
			err = errors.Join(err, body.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrObjects, err)
		}
	} else if !isPacked {
		return nil, ErrDamaged
	}
	_, decoder := codecs()
	plain, err := decoder.DecodeAll(data, nil) // a frame has a checksum
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return plain, nil
}

// discard deletes the object of a value, if it has one. A failure leaves it to the bucket's lifecycle rule.
func (s *db) discard(ctx context.Context, value string) {
	if key, ok := strings.CutPrefix(value, pointer); ok && s.cfg.Objects != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), objectLimit)
		defer cancel()
		_ = s.cfg.Objects.Delete(ctx, key)
	}
}

// discardUnused deletes the object of a value that a step refused to store. After any other error, Redis may have it.
func (s *db) discardUnused(ctx context.Context, value []byte, err error) {
	if errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) {
		s.discard(ctx, string(value))
	}
}

// objectName returns a task's or thread's name as a part of a key.
func objectName(owner string) string { return strings.NewReplacer("/", "_", "#", "_").Replace(owner) }

// SweepObjects removes the values that expired in Redis, if the objects are in a directory; in S3, a lifecycle rule
// does so.
func (s *Store) SweepObjects(ctx context.Context) error {
	dir, ok := s.cfg.Objects.(*objects.Dir)
	if !ok {
		return nil
	}
	_, err := dir.Sweep(ctx, max(s.cfg.SessionTTL, s.cfg.Retention)+24*time.Hour)
	return err
}

// join returns values as one, and split takes it apart.
func join(parts ...[]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = protowire.AppendBytes(all, p)
	}
	return all
}

func split(all []byte) (parts [][]byte, err error) {
	for len(all) > 0 {
		part, n := protowire.ConsumeBytes(all)
		if n < 0 {
			return nil, ErrDamaged
		}
		parts, all = append(parts, part), all[n:]
	}
	return parts, nil
}
