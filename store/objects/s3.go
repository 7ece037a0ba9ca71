package objects

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// S3 is a bucket of AWS S3 or of a server that speaks its protocol.
type S3 struct {
	client     *minio.Client
	bucket     string
	prefix     string // ends in a slash, or is empty
	encryption encrypt.ServerSide
}

// partSize is the size of the parts in which a value of unknown size is uploaded, and so the memory of one upload. S3
// allows 10,000 parts of at least 5 MiB.
const partSize = 8 << 20

// attempts is how often a request is tried. The store decides what to do without an object store, so it has to know
// soon.
const attempts = 3

func openS3(u *url.URL) (*S3, error) {
	q := u.Query()
	for name := range q {
		switch name {
		case "endpoint", "region", "path-style", "sse", "kms-key":
		default:
			return nil, fmt.Errorf("the object store's address has an unknown parameter %q", name)
		}
	}
	if u.Host == "" {
		return nil, errors.New("the object store's address names no bucket; write s3://bucket/prefix")
	}
	s := &S3{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if s.prefix != "" {
		if err := checkKey(s.prefix); err != nil {
			return nil, err
		}
		s.prefix += "/"
	}
	var err error
	if s.encryption, err = encryption(q.Get("sse"), q.Get("kms-key")); err != nil {
		return nil, err
	}
	e, err := url.Parse(cmp.Or(q.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"),
		"https://s3.amazonaws.com"))
	if err != nil || e.Host == "" || e.Scheme != "https" && e.Scheme != "http" {
		return nil, errors.New("the object store's endpoint must be a URL such as https://minio.example.com:9000")
	}
	lookup := minio.BucketLookupAuto
	if q.Get("path-style") == "true" {
		lookup = minio.BucketLookupPath
	}
	transport, err := minio.DefaultTransport(e.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("open object store: %w", err)
	}
	transport.ResponseHeaderTimeout = 30 * time.Second
	s.client, err = minio.New(e.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}},
		}),
		Secure: e.Scheme == "https", Region: cmp.Or(q.Get("region"), os.Getenv("AWS_REGION")), BucketLookup: lookup,
		Transport: transport, MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("open object store: %w", err)
	}
	s.client.SetAppInfo("errand", "")
	return s, nil
}

func encryption(kind, key string) (encrypt.ServerSide, error) {
	switch {
	case kind == "" && key == "":
		return nil, nil //nolint:nilnil // the bucket's own setting applies
	case kind == "AES256" && key == "":
		return encrypt.NewSSE(), nil
	case kind == "aws:kms":
		return encrypt.NewSSEKMS(key, nil)
	default:
		return nil, errors.New("sse must be AES256 or aws:kms; only aws:kms can have a kms-key")
	}
}

// Shared implements Bucket.
func (s *S3) Shared() bool { return true }

// Check writes, reads and deletes a small value. If S3 refuses that, remedy says what an operator can do; it is empty
// if S3 cannot be reached.
func (s *S3) Check(ctx context.Context) (remedy string, err error) {
	key := "check/" + randomName()
	if err = s.Put(ctx, key, strings.NewReader("errand"), 6); err == nil {
		var value io.ReadCloser
		if value, err = s.Get(ctx, key); err == nil {
			_, err = io.Copy(io.Discard, value)
			err = errors.Join(err, value.Close())
		}
		err = errors.Join(err, s.Delete(ctx, key))
	}
	switch code(err) {
	case minio.NoSuchBucket:
		remedy = fmt.Sprintf("Create bucket %s, or correct ERRAND_OBJECTS.", s.bucket)
	case minio.AccessDenied:
		remedy = fmt.Sprintf("Allow s3:PutObject, s3:GetObject, s3:DeleteObject and s3:AbortMultipartUpload on %s/%s*.",
			s.bucket, s.prefix)
	case "":
		// the caller knows what to do about the network
	default:
		remedy = "Correct what it names: ERRAND_OBJECTS, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or the clock."
	}
	return remedy, err
}

// Put implements Bucket. S3 compares each part with its MD5 sum.
func (s *S3) Put(ctx context.Context, key string, data io.Reader, size int64) error {
	err := checkKey(key)
	if err == nil {
		_, err = s.client.PutObject(ctx, s.bucket, s.prefix+key, data, size, minio.PutObjectOptions{
			ContentType: "application/octet-stream", ServerSideEncryption: s.encryption, SendContentMd5: true,
			PartSize: partSize, NumThreads: 1,
		})
	}
	if err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	return nil
}

// Get implements Bucket.
func (s *S3) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	err := checkKey(key)
	if err == nil {
		var body io.ReadCloser
		if body, _, _, err = (minio.Core{Client: s.client}).GetObject(ctx, s.bucket, s.prefix+key,
			minio.GetObjectOptions{}); err == nil {
			return body, nil
		}
	}
	if code(err) == minio.NoSuchKey {
		err = ErrNotFound
	}
	return nil, fmt.Errorf("get object %s: %w", key, err)
}

// Delete implements Bucket.
func (s *S3) Delete(ctx context.Context, key string) error {
	err := checkKey(key)
	if err == nil {
		err = s.client.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{})
	}
	if err != nil && code(err) != minio.NoSuchKey {
		return fmt.Errorf("delete object %s: %w", key, err)
	}
	return nil
}

// randomName returns a name that no other writer chooses.
func randomName() string { return strings.ToLower(rand.Text()) }

// code returns S3's code of an error; empty if S3 did not answer.
func code(err error) string {
	response, _ := errors.AsType[minio.ErrorResponse](err)
	return response.Code
}
