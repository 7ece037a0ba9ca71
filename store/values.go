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
	// inlineAway is the size of logs and archived events that stay in Redis while the object store is away. Their
	// number is not bounded by that of live tasks; checkpoints and sessions may take inlineLocal.
	inlineAway = 64 << 10
	// objectLimit bounds a request to the object store, and waitedLimit one that a run waits for before it goes on.
	objectLimit = 30 * time.Second
	waitedLimit = 10 * time.Second
	// replacedFor is how long the object of a replaced value stays. If a replica takes over that does not know the new
	// value, it has the old one.
	replacedFor = 10 * time.Minute
	// maxReplaced bounds how many replaced objects a process remembers. The lifecycle rule deletes the others.
	maxReplaced = 10_000
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

// values keeps large values. Its methods are safe for concurrent use.
type values struct {
	bucket objects.Bucket // nil: all are in Redis

	saving, reading breaker
	replaced        replaced
}

// keep stores a value of a kind and an owner, and returns what belongs into Redis. If the object store does not answer,
// a value that Redis can bear stays there, and a larger one is refused with [ErrObjects].
func (v *values) keep(ctx context.Context, kind, owner string, data []byte) ([]byte, error) {
	encoder, _ := codecs()
	value := encoder.EncodeAll(data, []byte(packed))
	bucket, limit := v.bucket, inlineLocal
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
	away, patience := inlineLocal, waitedLimit
	if kind == log || kind == archive {
		away, patience = inlineAway, objectLimit
	}
	key := kind + "/" + objectName(owner) + "/" + strings.ToLower(rand.Text())
	err := v.saving.try(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return bucket.Put(ctx, key, bytes.NewReader(value[len(packed):]), int64(len(value)-len(packed)))
	})
	switch {
	case err == nil:
		return []byte(pointer + key), nil
	case len(value) <= away:
		return value, nil
	default:
		return nil, err
	}
}

// fetch returns the value of which Redis has this. It returns [ErrDamaged] if it is not what was kept, or if its object
// is gone or on another machine, and [ErrObjects] if the object store does not answer.
func (v *values) fetch(ctx context.Context, value string) ([]byte, error) {
	inline, isPacked := strings.CutPrefix(value, packed)
	data := []byte(inline)
	if key, ok := strings.CutPrefix(value, pointer); ok && v.bucket != nil {
		var err error
		if data, err = v.object(ctx, key); err != nil {
			return nil, err
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

// object reads an object. It returns [ErrDamaged] if none exists.
func (v *values) object(ctx context.Context, key string) (data []byte, err error) {
	var missing error
	err = v.reading.try(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, objectLimit)
		defer cancel()
		body, err := v.bucket.Get(ctx, key)
		if errors.Is(err, objects.ErrNotFound) {
			missing = fmt.Errorf("%w: %w", ErrDamaged, err)
			return nil
		}
		if err != nil {
			return err
		}
		data, err = io.ReadAll(io.LimitReader(body, maxUnpacked))
		return errors.Join(err, body.Close())
	})
	return data, errors.Join(err, missing)
}

// replaced are the objects of values that were replaced, in the order in which they are deleted. The zero value is
// ready, and its methods are safe for concurrent use.
type replaced struct {
	mu      sync.Mutex
	objects []replacedObject
}

type replacedObject struct {
	value string
	due   time.Time
}

// add remembers a value's object and returns at most n objects that are due, which are no longer remembered.
func (r *replaced) add(value string, now time.Time, n int) (due []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.HasPrefix(value, pointer) && len(r.objects) < maxReplaced {
		r.objects = append(r.objects, replacedObject{value, now.Add(replacedFor)})
	}
	for len(due) < n && len(r.objects) > 0 && !r.objects[0].due.After(now) {
		due, r.objects = append(due, r.objects[0].value), r.objects[1:]
	}
	return due
}

// replace deletes the object of a replaced value in replacedFor, and now at most two that are due, so that deleting
// keeps up with saving. An object that is not deleted, because its process ends or the object store is away, is left to
// the bucket's lifecycle rule.
func (v *values) replace(ctx context.Context, value string) {
	for _, due := range v.replaced.add(value, time.Now(), 2) {
		v.discard(ctx, due)
	}
}

// deleteReplaced deletes what is due at a time.
func (v *values) deleteReplaced(ctx context.Context, now time.Time) {
	for _, due := range v.replaced.add("", now, maxReplaced) {
		v.discard(ctx, due)
	}
}

// discard deletes the object of a value now, if it has one. A failure leaves it to the bucket's lifecycle rule.
func (v *values) discard(ctx context.Context, value string) {
	if key, ok := strings.CutPrefix(value, pointer); ok && v.bucket != nil {
		ctx = context.WithoutCancel(ctx)
		_ = v.saving.try(ctx, func() error {
			ctx, cancel := context.WithTimeout(ctx, waitedLimit)
			defer cancel()
			return v.bucket.Delete(ctx, key)
		})
	}
}

// discardUnused deletes the object of a value that a step refused to store. After any other error, Redis may have it.
func (v *values) discardUnused(ctx context.Context, value []byte, err error) {
	if errors.Is(err, ErrStale) || errors.Is(err, ErrNotFound) {
		v.discard(ctx, string(value))
	}
}

// objectName returns a task's or thread's name as a part of a key.
func objectName(owner string) string { return strings.NewReplacer("/", "_", "#", "_").Replace(owner) }

// sweep deletes the replaced objects that are due, and in a directory also what is older than life.
func (v *values) sweep(ctx context.Context, life time.Duration) error {
	v.deleteReplaced(ctx, time.Now())
	dir, ok := v.bucket.(*objects.Dir)
	if !ok {
		return nil
	}
	_, err := dir.Sweep(ctx, life)
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
