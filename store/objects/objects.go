// Package objects keeps values that are too large for Redis: checkpoints, sessions, logs and pictures. They are in an
// S3 bucket or below a directory.
//
// It promises:
//   - [Bucket.Put] replaces a value as a whole. After an error, or the death of the process, the key has the old value
//     or none, never a part of the new one.
//   - [Bucket.Get] returns [ErrNotFound] for a key without a value. Any other error says nothing about the value: the
//     bucket may be unreachable.
//   - Credentials are in no error, and no key leads out of the bucket's prefix or directory.
//
// It does not promise that a value that was read is the one that was written last: the store remembers the sum of what
// it wrote, and writes each value under a new key. Nothing here expires. The store deletes what it replaces some
// minutes later; what a crash leaves behind is removed by a lifecycle rule of the bucket, or by [Dir.Sweep].
//
// All types are safe for concurrent use. A context bounds each call.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// ErrNotFound is returned for a key that has no value.
var ErrNotFound = errors.New("no such object")

// Bucket holds values by key. A key is a path of names with slashes, such as "checkpoint/<task>/<nonce>"; names are
// not "", "." or "..".
type Bucket interface {
	// Put stores what it reads from data under key. size is the number of bytes, or -1 if it is unknown.
	Put(ctx context.Context, key string, data io.Reader, size int64) error
	// Get returns the value of key. The caller closes it; reading it may fail as well.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Delete removes key. It is no error if key has no value.
	Delete(ctx context.Context, key string) error
	// Shared reports whether every machine of the fleet reads what one of them wrote.
	Shared() bool
}

// Open returns the bucket at an address: s3://bucket/prefix, or file:///directory for a directory that all machines
// share. It checks the address and, for a directory, that it can be written. It does not connect to S3; see
// [S3.Check].
//
// These parameters may follow an S3 address: endpoint (a URL; default AWS), region, path-style=true, and sse=AES256 or
// sse=aws:kms with kms-key. Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN), AWS' file of shared credentials, a web identity token, or the machine's or container's role.
func Open(address string) (Bucket, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("the object store's address is no URL; write s3://bucket/prefix or file:///directory")
	case u.User != nil:
		return nil,
			errors.New("the object store's address must not contain credentials; set " +
				"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case u.Scheme == "s3":
		return openS3(u)
	case u.Scheme == "file" && u.Host == "" && u.Path != "":
		return OpenDir(u.Path, true)
	default:
		return nil,
			fmt.Errorf("the object store's address %q is not supported; write s3://bucket/prefix or file:///directory",
				u.Redacted())
	}
}

// checkKey refuses keys that could lead out of the prefix, or that file systems cannot store.
func checkKey(key string) error {
	for name := range strings.SplitSeq(key, "/") {
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "\\\x00") {
			return fmt.Errorf("%q is no valid object key", key)
		}
	}
	return nil
}
