package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// TestMain lets the test binary play the CLI.
func TestMain(m *testing.M) {
	if os.Getenv("CHAOS_TEST_CLI") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// host is what the CLI talks to: errand, the model and the witness in one.
type host struct {
	*testing.T
	dir   string
	model *httptest.Server

	mu      sync.Mutex
	answers []http.HandlerFunc // of the model, one after the other; then good ones
	taken   []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{T: t, dir: t.TempDir()}
	h.model = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h.mu.Lock()
		var answer http.HandlerFunc
		if len(h.answers) > 0 {
			answer, h.answers = h.answers[0], h.answers[1:]
		}
		h.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(h.model.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go h.witness(c)
		}
	}()
	// The witness's address is next to the executable, so each test has a separate executable.
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		// A fork of another test would inherit the file open for writing, and exec would then fail with ETXTBSY
		// (golang/go#22315).
		syscall.ForkLock.RLock()
		err = os.WriteFile(filepath.Join(h.dir, "claude"), self, 0o700)
		syscall.ForkLock.RUnlock()
	}
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(h.dir, script.AddressFile), []byte(ln.Addr().String()), 0o600),
			os.Symlink("/proc", filepath.Join(h.dir, script.ProcDir)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) witness(c net.Conn) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		var word script.Word
		_ = json.Unmarshal(lines.Bytes(), &word)
		h.mu.Lock()
		before := 0
		for _, t := range h.taken {
			if t == word.Token {
				before++
			}
		}
		if word.Token != "" {
			h.taken = append(h.taken, word.Token)
		}
		h.mu.Unlock()
		fmt.Fprintf(c, "{\"before\":%d}\n", before)
	}
}

// program is a CLI under way.
type program struct {
	*host
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (h *host) start(args ...string) *program {
	h.Helper()
	cmd := exec.CommandContext(h.Context(), filepath.Join(h.dir, "claude"), args...)
	cmd.Dir = h.dir
	cmd.Env = []string{
		"CHAOS_TEST_CLI=1", "CLAUDE_CONFIG_DIR=" + filepath.Join(h.dir, "config"), "ANTHROPIC_BASE_URL=" + h.model.URL,
		"ERRAND_RUN=r1",
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		h.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &program{h, cmd, in, bufio.NewReader(out)}
}

func (p *program) send(v any) {
	p.Helper()
	line, err := json.Marshal(v)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *program) say(uuid, text string) {
	p.Helper()
	p.send(object{"type": "user", "uuid": uuid, "message": object{"role": "user", "content": text}})
}

// until reads lines until one is of the kind, which is its type, or subtype, or state behind its command's uuid, and
// returns it.
func (p *program) until(kind string) object {
	p.Helper()
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			p.Fatalf("wait for %s: %v", kind, err)
		}
		var o object
		if err := json.Unmarshal(line, &o); err != nil {
			p.Fatalf("%s: %v", line, err)
		}
		if slices.Contains([]any{
			o["type"], o["subtype"], o["state"], fmt.Sprint(o["command_uuid"], " ", o["state"]),
		}, any(kind)) {
			return o
		}
	}
}

// orders are those of a turn that takes that long.
func orders(n int, work time.Duration) string {
	return "please " + script.Orders{Token: script.Token(n), Work: work}.String()
}

func TestMessagesAreAnsweredInTurns(t *testing.T) {
	t.Parallel()
	p := newHost(t).start("--session-id=s1")
	p.send(object{"type": "control_request", "request_id": "q", "request": object{"subtype": "initialize"}})
	p.until("control_response")
	p.say("u1", orders(1, 300*time.Millisecond))
	p.until("u1 started")
	p.say("u2", orders(2, 0)) // while it works
	p.until("u2 queued")
	first := p.until("result")
	if tokens, ok := script.Answers(fmt.Sprint(first["result"])); !ok ||
		!slices.Equal(tokens, []string{script.Token(1)}) {
		t.Errorf("%v", first)
	}
	p.until("u1 completed")
	second := p.until("result")
	if tokens, ok := script.Answers(fmt.Sprint(second["result"])); !ok ||
		!slices.Equal(tokens, []string{script.Token(2)}) {
		t.Errorf("%v", second)
	}
	p.until("u2 completed")
	p.until("idle")
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// The resumed session answers messages that were received and not answered, and reports them to the witness again.
func TestKilledAndResumed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start("--session-id=s1")
	p.say("u1", orders(1, time.Hour))
	p.until("u1 started")
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	again := h.start("--resume=s1")
	again.say("u2", "You were interrupted by a restart of the worker. Go on.")
	if got := fmt.Sprint(again.until("result")["result"]); got != script.Answer([]string{script.Token(1)}) {
		t.Error(got)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.taken, []string{script.Token(1), script.Token(1)}) {
		t.Errorf("the witness heard of %v", h.taken)
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	control := func(subtype string) object {
		return object{"type": "control_request", "request_id": "q", "request": object{"subtype": subtype}}
	}
	h := newHost(t)
	p := h.start("--session-id=s1")
	p.say("u1", orders(1, time.Hour))
	p.until("u1 started")
	p.send(control("interrupt"))
	if r := p.until("result"); r["terminal_reason"] != "aborted_streaming" || r["is_error"] != true {
		t.Errorf("%v", r)
	}
	p.until("idle")
	p.send(control("end_session"))
	if err := p.cmd.Wait(); err == nil { // the last result was an error
		t.Error("it ends as if all were well")
	}
	unknown := h.start("--resume=unknown")
	if r := unknown.until("error_during_execution"); !strings.Contains(fmt.Sprint(r["errors"]),
		"No conversation found") {
		t.Errorf("%v", r)
	}
}

func TestTroubleWithTheModel(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	exhausted := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Anthropic-Ratelimit-Unified-Status", "rejected")
		w.Header().Set("Anthropic-Ratelimit-Unified-Reset", "1795000000")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		retried bool
		failed  bool
		word    string // in the result
	}{
		"recovers":    {[]http.HandlerFunc{status(429), status(500)}, true, false, "ANSWER"},
		"overloaded":  {[]http.HandlerFunc{status(529), status(529), status(529)}, true, true, "Repeated 529"},
		"usage limit": {[]http.HandlerFunc{exhausted}, false, true, "5-hour limit"},
		"refused":     {[]http.HandlerFunc{status(400)}, false, true, "API Error: 400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.answers = c.answers
			p := h.start("--session-id=s1")
			p.say("u1", orders(1, 0))
			if c.retried {
				p.until("api_retry")
			}
			if name == "usage limit" {
				info, _ := p.until("rate_limit_event")["rate_limit_info"].(map[string]any)
				if info["status"] != "rejected" || info["resetsAt"] != 1795000000.0 {
					t.Errorf("%v", info)
				}
			}
			r := p.until("result")
			if failed, _ := r["is_error"].(bool); failed != c.failed ||
				!strings.Contains(fmt.Sprint(r["result"]), c.word) {
				t.Errorf("%v", r)
			}
		})
	}
}
