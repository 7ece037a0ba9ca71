package objects_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store/objects"
)

func openDir(t *testing.T) *objects.Dir {
	t.Helper()
	d, err := objects.OpenDir(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

func get(t *testing.T, b objects.Bucket, key string) ([]byte, error) {
	t.Helper()
	r, err := b.Get(t.Context(), key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// testBucket tests what every bucket promises.
func testBucket(t *testing.T, b objects.Bucket) {
	t.Helper()
	for _, size := range []int{0, 1, 100 << 10, 17 << 20} {
		want := random(size)
		for _, declared := range []int64{int64(size), -1} {
			if err := b.Put(t.Context(), "a/b/c", bytes.NewReader(want), declared); err != nil {
				t.Fatalf("%d bytes, declared %d: %v", size, declared, err)
			}
			got, err := get(t, b, "a/b/c")
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, declared %d: got %d bytes, %v", size, declared, len(got), err)
			}
		}
	}
	// A value that cannot be read to its end leaves the old one.
	old := []byte("old")
	if err := b.Put(t.Context(), "a/b/c", bytes.NewReader(old), 3); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := b.Put(t.Context(), "a/b/c", io.MultiReader(bytes.NewReader(random(9<<20)), iotestErr{broken}), -1)
	if !errors.Is(err, broken) {
		t.Errorf("put of a broken value: %v", err)
	}
	if err := b.Put(t.Context(), "a/b/c", strings.NewReader("short"), 6); err == nil {
		t.Error("a value that is shorter than declared was stored")
	}
	if got, err := get(t, b, "a/b/c"); err != nil || !bytes.Equal(got, old) {
		t.Errorf("after failed puts: %q, %v", got, err)
	}
	for range 2 {
		if err := b.Delete(t.Context(), "a/b/c"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
	if _, err := get(t, b, "a/b/c"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("deleted value: %v", err)
	}
	for _, key := range []string{
		"", "/a", "a/", "a//b", "../a", "a/../../b", "a/./b", strings.Repeat("a", 300), "a\x00",
	} {
		if err := b.Put(t.Context(), key, strings.NewReader("x"), 1); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Put(ended, "a/x", bytes.NewReader(random(100)), 100); !errors.Is(err, context.Canceled) {
		t.Errorf("put with an ended context: %v", err)
	}
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }

func TestDir(t *testing.T) {
	t.Parallel()
	testBucket(t, openDir(t))
}

func TestDirFollowsNoLinkOut(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	d, err := objects.OpenDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, d, "link/secret"); err == nil {
		t.Error("read through a link that leads out")
	}
	if err := d.Put(t.Context(), "link/new", strings.NewReader("x"), 1); err == nil {
		t.Error("wrote through a link that leads out")
	}
}

func TestDirThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := objects.OpenDir(file, false); err == nil {
		t.Error("a file was opened as a directory")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := objects.OpenDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, key := range []string{"old/a", "old/b", "both/old", "both/young"} {
		if err := d.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "both", ".new-abandoned"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"old/a", "old/b", "both/old", "both/.new-abandoned"} {
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	n, err := d.Sweep(t.Context(), 24*time.Hour)
	if n != 3 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	var left []string
	_ = filepath.WalkDir(dir, func(name string, _ os.DirEntry, _ error) error {
		rel, _ := filepath.Rel(dir, name)
		left = append(left, rel)
		return nil
	})
	if got := strings.Join(left, " "); got != ". both both/young" {
		t.Errorf("left: %s", got)
	}
	if err := d.Put(t.Context(), "old/c", strings.NewReader("x"), 1); err != nil { // its directory was removed
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                                 "not supported",
		"redis://x":                        "not supported",
		"file://host/dir":                  "not supported",
		"s3://":                            "names no bucket",
		"s3://key:secret@bucket":           "must not contain credentials",
		"s3://bucket/../other":             "no valid object key",
		"s3://bucket?sse=rot13":            "sse must be",
		"s3://bucket?sse=AES256&kms-key=k": "only aws:kms",
		"s3://bucket?endpont=http://x":     "unknown parameter",
		"s3://bucket?endpoint=x":           "must be a URL",
	} {
		_, err := objects.Open(address)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		} else if strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: the error has the secret: %v", address, err)
		}
	}
}

// faults is a proxy in front of an S3 server that fails as real ones do.
type faults struct {
	left   atomic.Int32 // requests that fail before the others pass
	mode   atomic.Value // "503", "cut", "hang"
	failed atomic.Int32
}

func (f *faults) start(t *testing.T, backend string) string {
	t.Helper()
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.left.Add(-1) < 0 {
			proxy.ServeHTTP(w, r)
			return
		}
		f.failed.Add(1)
		switch f.mode.Load() {
		case "cut":
			panic(http.ErrAbortHandler)
		case "hang":
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w,
				`<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}
