package objects_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/s3server"
	"github.com/errand-fleet/errand/store/objects"
)

// openS3 returns a bucket on a server. Its tests cannot be parallel: the credentials are in the environment.
func openS3(t *testing.T, endpoint, prefix string) *objects.S3 {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3server.SecretKey)
	b, err := objects.Open("s3://fleet/" + prefix + "?region=us-east-1&endpoint=" + url.QueryEscape(endpoint))
	if err != nil {
		t.Fatal(err)
	}
	return b.(*objects.S3)
}

func TestS3(t *testing.T) {
	server := s3server.Start(t)
	b := openS3(t, server, "one")
	if _, err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	testBucket(t, b)

	// A prefix separates fleets.
	other := openS3(t, server, "two")
	if err := b.Put(t.Context(), "key", strings.NewReader("one"), 3); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, other, "key"); err == nil {
		t.Error("another prefix has the value")
	}
}

func TestS3NamesTheRemedy(t *testing.T) {
	server := s3server.Start(t)
	openS3(t, server, "")
	b, err := objects.Open("s3://nowhere?region=us-east-1&endpoint=" + url.QueryEscape(server))
	if err != nil {
		t.Fatal(err)
	}
	if remedy, err := b.(*objects.S3).Check(t.Context()); err == nil ||
		!strings.Contains(remedy, "Create bucket nowhere") {
		t.Errorf("no such bucket: %v: %s", err, remedy)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	b, err = objects.Open("s3://fleet?region=us-east-1&endpoint=" + url.QueryEscape(server))
	if err != nil {
		t.Fatal(err)
	}
	if remedy, err := b.(*objects.S3).Check(t.Context()); err == nil ||
		!strings.Contains(remedy, "AWS_ACCESS_KEY_ID") {
		t.Errorf("wrong secret: %v: %s", err, remedy)
	} else if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error has the secret: %v", err)
	}
}

// What S3 refuses for a reason that is not listed is not a matter of the network.
func TestS3RefusesForAnotherReason(t *testing.T) {
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>RequestTimeTooSkewed</Code><Message>The clocks differ.</Message></Error>")
	}))
	b := openS3(t, s3.URL, "")
	if remedy, err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "The clocks differ.") ||
		!strings.Contains(remedy, "clock") {
		t.Errorf("%v: %s", err, remedy)
	}
	s3.Close()
	if remedy, err := b.Check(t.Context()); err == nil || remedy != "" {
		t.Errorf("unreachable: %v: %s", err, remedy)
	}
}

// TestS3Faults fails the first requests in the ways of real servers and networks.
func TestS3Faults(t *testing.T) {
	server := s3server.Start(t)
	want := random(100 << 10)
	for _, mode := range []string{"503", "cut"} {
		t.Run(mode, func(t *testing.T) {
			var f faults
			f.mode.Store(mode)
			b := openS3(t, f.start(t, server), mode)
			f.left.Store(1)
			if err := b.Put(t.Context(), "key", bytes.NewReader(want), int64(len(want))); err != nil {
				t.Errorf("put after one fault: %v", err)
			}
			f.left.Store(1)
			if got, err := get(t, b, "key"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("get after one fault: %d bytes, %v", len(got), err)
			}
			f.left.Store(1 << 20)
			if err := b.Put(t.Context(), "key", strings.NewReader("new"), 3); err == nil {
				t.Error("put without a server succeeded")
			}
			f.left.Store(0)
			if got, err := get(t, b, "key"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("after a failed put: %d bytes, %v", len(got), err)
			}
			if f.failed.Load() < 3 {
				t.Errorf("only %d requests failed", f.failed.Load())
			}
		})
	}
	t.Run("hang", func(t *testing.T) {
		var f faults
		f.mode.Store("hang")
		b := openS3(t, f.start(t, server), "hang")
		f.left.Store(1 << 20)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := b.Put(ctx, "key", strings.NewReader("new"), 3); err == nil {
			t.Error("put to a silent server succeeded")
		}
		if ctx.Err() == nil {
			t.Error("put gave up before its context ended")
		}
	})
}
