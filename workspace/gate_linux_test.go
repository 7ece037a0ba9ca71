package workspace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// neighbour is another process of the same user, which looks into every git of a workspace whenever that has asked
// its remote something.
type neighbour struct {
	*testing.T
	root string // of the workspace
	gate *regexp.Regexp

	mu    sync.Mutex
	looks int
	found map[string]bool // places where the credential was
	met   func(git, address string)
}

// look reads what the kernel shows of each git: environment, arguments, open files, memory.
func (n *neighbour) look() {
	if !n.mu.TryLock() {
		return // its own look came in through a gate
	}
	defer n.mu.Unlock()
	encoded := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + secret))
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, _ := os.ReadFile(dir + "/environ")
		if !bytes.Contains(environ, []byte("GIT_CEILING_DIRECTORIES="+filepath.Dir(n.root)+"\x00")) {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		texts := map[string][]byte{"environ": environ, "cmdline": cmdline, "mem": memory(dir)}
		files, _ := filepath.Glob(dir + "/fd/*")
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				texts[file], _ = os.ReadFile(file)
			}
		}
		address := n.gate.FindString(string(environ))
		if address == "" || len(texts["mem"]) > 0 && !bytes.Contains(texts["mem"], []byte(address)) {
			continue // a git that talks to no remote, or has only just started
		}
		n.looks++
		for place, text := range texts {
			if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(encoded)) {
				n.found[place] = true
			}
		}
		if n.met != nil {
			n.met(string(cmdline), address)
		}
	}
}

// memory returns a process' writable memory.
func memory(dir string) []byte {
	maps, err := os.Open(dir + "/maps")
	if err != nil {
		return nil
	}
	defer maps.Close()
	mem, err := os.Open(dir + "/mem")
	if err != nil {
		return nil
	}
	defer mem.Close()
	var all []byte
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") {
			continue
		}
		part := make([]byte, to-from)
		n, _ := mem.ReadAt(part, from)
		all = append(all, part[:max(n, 0)]...)
	}
	return all
}

// watched is a workspace on a host that takes pushes, with a neighbour.
func watched(t *testing.T) (*origin, *Workspace, *neighbour) {
	t.Helper()
	o := newOrigin(t)
	testGit(t, o.bare, "config", "http.receivepack", "true")
	host := o.serve(rules{password: secret})
	n := &neighbour{T: t, found: map[string]bool{}, gate: regexp.MustCompile(`http://gate:-@127\.0\.0\.1:\d+/\w+`)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.look()
		host.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	w := open(t, Config{
		Dir: filepath.Join(t.TempDir(), "root"), URL: func(repo string) string { return s.URL + "/" + repo + ".git" },
		Credential: func(context.Context, string) (string, string, error) { return "x-access-token", secret, nil },
	})
	n.root = w.cfg.Dir
	return o, w, n
}

// Another process of the same user should not find the credential in a git that talks to the remote.
func TestNeighbourFindsNoCredential(t *testing.T) {
	t.Parallel()
	_, w, n := watched(t)
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	published(t, w, c, publication())
	if n.looks < 6 || len(n.found) > 0 {
		t.Errorf("%d looks, found in %v", n.looks, n.found)
	}
}

// The gate's address can be read, but only allows what git was about to do.
func TestNeighbourAtTheGate(t *testing.T) {
	t.Parallel()
	o, w, n := watched(t)
	c := checkout(t, w, api)
	write(t, c.Dir+"/new.txt", "new\n")
	zero := strings.Repeat("0", 40)
	head := o.sha("main")
	pkt := func(lines ...string) string {
		all := ""
		for _, line := range lines {
			all += fmt.Sprintf("%04x%s", len(line)+4, line)
		}
		return all + "0000"
	}
	other := zero + " " + head + " refs/heads/evil"
	tries := []struct{ method, what, body string }{
		{"GET", "/info/refs", ""},
		{"GET", "/info/refs?service=git-upload-pack", ""},
		{"GET", "/../other.git/info/refs?service=git-receive-pack", ""},
		{"GET", "/HEAD", ""},
		{"POST", "/git-upload-pack", "0000"},
		{"POST", "/git-receive-pack", pkt(other + "\x00 report-status")},
		{"POST", "/git-receive-pack", pkt(head+" "+zero+" refs/heads/main\x00", other)},
		{"POST", "/git-receive-pack", pkt("push-cert\x00")},
		{"POST", "/git-receive-pack", "ffff" + other},
		{"POST", "/git-receive-pack", "00"},
	}
	pushes := 0
	n.met = func(git, address string) {
		if !strings.Contains(git, "push") || pushes > 0 {
			return
		}
		pushes++
		for _, try := range tries {
			req, err := http.NewRequestWithContext(t.Context(), try.method, address+try.what,
				strings.NewReader(try.body))
			if err != nil {
				t.Error(err)
				continue
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				continue
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: %s", try.method, try.what, resp.Status)
			}
		}
	}
	p := published(t, w, c, publication())
	if pushes != 1 || o.sha("evil") != "" || o.sha("main") != head || o.sha(ownBranch) != p.Commit {
		t.Errorf("%d pushes met; evil is %q, main %q, ours %q", pushes, o.sha("evil"), o.sha("main"), o.sha(ownBranch))
	}
}

// Without the token the gate should not answer, and when git has ended nothing should listen.
func TestGateIsClosed(t *testing.T) {
	t.Parallel()
	_, w, n := watched(t)
	var last string
	n.met = func(_, address string) {
		last = address
		at := strings.LastIndex(address, "/") + 1
		for _, guess := range []string{"guess", strings.Repeat("A", len(address)-at)} {
			resp, err := http.Get(address[:at] + guess + "/info/refs?service=git-upload-pack")
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("without the token: %s", resp.Status)
			}
		}
	}
	checkout(t, w, api)
	if resp, err := http.Get(last + "/info/refs?service=git-upload-pack"); last == "" || err == nil {
		t.Errorf("after git's end: %q, %v", last, resp)
	}
}

// Connections without the token are bounded, end when they are refused, and take none of git's places.
func TestStrangersAtTheGate(t *testing.T) {
	t.Parallel()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "refs") }))
	t.Cleanup(host.Close)
	u, err := url.Parse(host.URL + "/acme/api.git")
	if err != nil {
		t.Fatal(err)
	}
	p := newGate(u, remote{username: "x-access-token", password: secret, transport: http.DefaultTransport})
	s := httptest.NewUnstartedServer(nil)
	s.Config = p.server()
	if s.Config.IdleTimeout == 0 || s.Config.ReadHeaderTimeout == 0 {
		t.Error("a silent connection may stay")
	}
	s.Config.ReadHeaderTimeout = 0 // only the bound closes them here
	s.Start()
	t.Cleanup(s.Close)
	dial := func(words string) net.Conn {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, words); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := dial("")
	for range gateConns {
		dial("GET /")
	}
	if got, err := io.ReadAll(first); len(got) > 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest got %q, %v", got, err)
	}
	for range 2 * gateConns {
		resp, err := http.Get(s.URL + p.path + "/info/refs?service=git-upload-pack")
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); string(body) != "refs" {
			t.Errorf("git got %s, %q", resp.Status, body)
		}
		_ = resp.Body.Close()
	}
	for name, request := range map[string]string{
		"without the token": "GET /guess/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n",
		"without its body":  "POST /guess/git-upload-pack HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
		"something else":    "GET " + p.path + "/HEAD HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		refused := bufio.NewReader(dial(request))
		resp, err := http.ReadResponse(refused, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if rest, err := io.ReadAll(refused); resp.StatusCode != http.StatusNotFound || len(rest) > 0 || err != nil {
			t.Errorf("%s: %s, then %q, %v", name, resp.Status, rest, err)
		}
	}
}

// The gate passes a push of its own change from the commit that it knows, and no other.
func TestOnlyThisChange(t *testing.T) {
	t.Parallel()
	const ref, none = "refs/heads/errand/x", "0000000000000000000000000000000000000000"
	a, b := "0a"+strings.Repeat("1", 36)+"00", strings.Repeat("2", 40)
	line := func(from, to, ref string) string {
		text := from + " " + to + " " + ref + "\x00 report-status\n"
		return fmt.Sprintf("%04x%s", len(text)+4, text)
	}
	for name, row := range map[string]struct {
		from, body string
		want       bool
	}{
		"as announced":        {a, line(a, b, ref) + "0000PACK", true},
		"a new branch":        {"", line(none, b, ref) + "0000PACK", true},
		"a probe":             {a, "0000", true},
		"from another commit": {a, line(b, b, ref) + "0000PACK", false},
		"not from nothing":    {a, line(none, b, ref) + "0000PACK", false},
		"not new":             {"", line(a, b, ref) + "0000PACK", false},
		"to another commit":   {a, line(a, a, ref) + "0000PACK", false},
		"of another branch":   {a, line(a, b, ref+"y") + "0000PACK", false},
		"and one more":        {a, line(a, b, ref) + line(a, b, ref+"y") + "0000PACK", false},
		"nothing":             {a, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := update{from: row.from, to: b, ref: ref}
			if got := c.alone(bufio.NewReader(strings.NewReader(row.body))); got != row.want {
				t.Errorf("it passes: %v", got)
			}
		})
	}
}
