// Package s3server runs the S3 server that tests talk to: versitygw, which others wrote, over a directory. tools/go.mod
// pins it.
package s3server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The credentials of every server.
const (
	AccessKey = "errand-test"
	SecretKey = "only-for-tests-0123456789"
)

// Start starts a server for one test and returns its URL. It has one bucket, "fleet". The test's end stops it. The
// first start on a machine builds the server, which takes about a minute.
func Start(t *testing.T) string {
	t.Helper()
	url, stop, err := Serve(find(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

// Serve starts the server that program is, with its data below dir, and returns its URL. It has one bucket, "fleet".
// The caller calls stop once.
func Serve(program, dir string) (url string, stop func(), err error) {
	data, sidecar := filepath.Join(dir, "data"), filepath.Join(dir, "sidecar")
	for _, d := range []string{filepath.Join(data, "fleet"), sidecar} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return "", nil, fmt.Errorf("start S3 server: %w", err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("start S3 server: %w", err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil { // the server cannot take over a listener
		return "", nil, fmt.Errorf("start S3 server: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--port", address, "--quiet", "posix", "--sidecar", sidecar, data)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		cancel()
		return "", nil, fmt.Errorf("start S3 server: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() { cancel(); <-ended }
	for {
		resp, err := http.Get("http://" + address + "/")
		if err == nil {
			_ = resp.Body.Close()
			return "http://" + address, stop, nil
		}
		select {
		case <-ended:
			cancel()
			return "", nil, fmt.Errorf("start S3 server: it ended: %s", out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// find returns the server's executable. Go keeps it in its build cache.
func find(t *testing.T) string {
	t.Helper()
	root, err := checkoutRoot()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+filepath.Join(root, "tools", "go.mod"),
		"-n", "versitygw")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("build S3 server: %w", err))
	}
	return strings.TrimSpace(string(out))
}

// checkoutRoot returns the checkout that the test runs in: a test starts in its package's directory.
func checkoutRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "tools", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no tools/go.mod above %s", start)
		}
	}
}
