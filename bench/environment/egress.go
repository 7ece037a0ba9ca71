package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/table"
)

// egress measures downloads from this machine: by a run in a sandbox through its egress proxy, as a tunnel and as a
// plain request, and by one without a sandbox, which connects directly.
func (b *bench) egress(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(b.download)}
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	work := filepath.Join(b.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	address := fmt.Sprintf("http://localhost:%d/", port)
	contenders := []struct {
		sandbox agent.Sandbox
		curl    string
	}{{agent.SandboxNone, ""}, {agent.SandboxBwrap, "--noproxy x --proxytunnel "}, {agent.SandboxBwrap, "--noproxy x "}}
	speeds := make([][]float64, len(contenders))
	for n := range b.Readings {
		for i, c := range contenders {
			r, err := agent.New(agent.Config{LogDir: filepath.Join(b.dir, "logs"), TempDir: b.dir, Sandbox: c.sandbox})
			if err != nil {
				return err
			}
			s, err := r.Script(ctx, agent.Script{
				ID: fmt.Sprintf("egress-%d-%d", n, i), Dir: work,
				Line: "curl -sS4 -o /dev/null -w '%{size_download} %{speed_download}' " + c.curl + address,
				Environment: agent.Environment{Egress: agent.Egress{
					Private: []string{fmt.Sprintf("localhost:%d", port)},
				}},
			})
			if err != nil {
				return err
			}
			size, speed, _ := strings.Cut(s.Output, " ")
			value, err := strconv.ParseFloat(speed, 64)
			if err != nil || size != strconv.FormatInt(b.Download, 10) {
				return fmt.Errorf("download of %d bytes: curl printed %q", b.Download, s.Output)
			}
			speeds[i] = append(speeds[i], value)
		}
	}
	direct, tunnel, plain := table.Median(speeds[0]), table.Median(speeds[1]), table.Median(speeds[2])
	b.report.Note("a download from loopback", direct/(1<<20), "%.0f MB/s")
	b.report.Note("through a tunnel of the egress proxy", tunnel/(1<<20), "%.0f MB/s")
	b.report.Least("as a part of the direct one", tunnel/direct, 0.7, "%.2f")
	b.report.Note("by a plain request through the egress proxy", plain/(1<<20), "%.0f MB/s")
	b.report.Least("as a part of the direct one", plain/direct, 0.7, "%.2f")
	return nil
}

// download writes a file of zeros.
func (b *bench) download(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", strconv.FormatInt(b.Download, 10))
	block := make([]byte, 1<<20)
	for range b.Download / int64(len(block)) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
