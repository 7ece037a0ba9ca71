package peers

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// The addresses of the front door and of nginx in the network of the test. A front door believes no proxy on an address
// of its own machine. The loopback interface has only the front door's; the kernel takes all others of that network
// (10.0.0.0/8) for local, too.
const doorIP, proxyIP = "10.0.0.5", "10.0.0.4"

const inside = "ERRAND_TEST_NETWORK"

// The nginx configuration of docs/deploy.md logs people in, names them to the front door and passes events on at once.
// The test runs in a separate network.
func TestNginx(t *testing.T) {
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(limited(t), os.Args[0], "-test.run=^TestNginx$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings:                []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings:                []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
			GidMappingsEnableSetgroups: os.Getuid() == 0, // others may not
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("in a separate network: %v\n%s", err, out)
		}
		return
	}
	address(t, "lo", "127.0.0.1")
	address(t, "lo:1", doorIP)

	front := run(t, []string{
		"ERRAND_STATE_DIR=" + t.TempDir(), "ERRAND_HTTP_ADDR=" + doorIP + ":8080", "ERRAND_CONSOLE_TOKEN=" + console,
		"REDIS_URL=" + redistest.Start(t), "ERRAND_TRUSTED_PROXY_HEADER=X-Forwarded-Email",
		"ERRAND_TRUSTED_PROXY_GROUPS=X-Forwarded-Groups", "ERRAND_TRUSTED_PROXIES=" + proxyIP,
	}, "errand listens at ", "../../bin/enqueue", "serve")
	oauth(t)
	p := startNginx(t)

	// Strangers go to the login, whatever they call themselves.
	for _, header := range []string{"", "X-Forwarded-Email", "X-Auth-Request-Email"} {
		resp := p.do("GET", "/?state=ended", "", header, "eve@acme.example")
		if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusFound ||
			to != p.base+"/oauth2/sign_in?rd=/?state=ended" {
			t.Errorf("with %q: %s to %q", header, resp.Status, to)
		}
	}
	// The front door does not believe the header from elsewhere.
	direct, err := http.NewRequestWithContext(limited(t), http.MethodGet, front+"/api/tasks", nil)
	if err != nil {
		t.Fatal(err)
	}
	direct.Header.Set("X-Forwarded-Email", "eve@acme.example")
	if resp, err := http.DefaultClient.Do(direct); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the proxy: %v, %v", resp, err)
	}

	// A person is who the login says, not who they say. Their browser's actions have the Origin of the proxy.
	login := []string{
		"Cookie", "_oauth2_proxy=ann", "X-Forwarded-Email", "eve@acme.example", "Origin", p.base, "Accept", "text/html",
	}
	resp := p.do("GET", "/", "", login...)
	if page := read(t, resp); resp.StatusCode != http.StatusOK || !strings.Contains(page, "ann@acme.example") ||
		strings.Contains(page, "eve@") {
		t.Errorf("%s %s", resp.Status, page)
	}

	// Events arrive while the stream is open: the first names the task, and only then is it cancelled.
	stream := p.do("POST", "/api/chat", `{"message": "hello"}`, append(login, "Content-Type", "application/json")...)
	lines, id := bufio.NewReader(stream.Body), ""
	for id == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: no event: %v", stream.Status, err)
		}
		if m := regexp.MustCompile(`"([0-9]{16}-chat-[^"]+)"`).FindStringSubmatch(line); m != nil {
			id = m[1]
		}
	}
	if resp := p.do("POST", "/tasks/"+id+"/cancel", "", login...); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("cancel: %s", resp.Status)
	}
	if rest, err := io.ReadAll(lines); err != nil || !strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the end of the stream: %s, %v", rest, err)
	}
	if task := read(t, p.do("GET", "/api/tasks/"+id, "", login...)); !strings.Contains(task,
		"Stopped by ann@acme.example") {
		t.Errorf("the task says %s", task)
	}
	// A message with pictures is larger than nginx takes by itself; errand says what is wrong with this one.
	large := `{"message": "` + strings.Repeat("a", 3<<20) + `"}`
	resp = p.do("POST", "/api/chat", large, append(login, "Content-Type", "application/json")...)
	if text := read(t, resp); !strings.Contains(text, "at most 1 MiB of text") {
		t.Errorf("a large message: %s %s", resp.Status, text)
	}
	// Events of Slack and GitHub need no login.
	if resp := p.do("POST", "/github/webhook", "{}"); resp.StatusCode == http.StatusFound {
		t.Errorf("webhook: %s", resp.Status)
	}
}

// address gives an interface of loopback an address and switches it on.
func address(t *testing.T, name, ip string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	call := func(request uintptr, value func(*[24]byte)) {
		var ifreq struct {
			name  [16]byte
			value [24]byte
		}
		copy(ifreq.name[:], name)
		value(&ifreq.value)
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request,
			uintptr(unsafe.Pointer(&ifreq))); errno != 0 {
			t.Fatalf("set up %s: %v", name, errno)
		}
	}
	call(syscall.SIOCSIFADDR, func(v *[24]byte) { v[0] = syscall.AF_INET; copy(v[4:8], net.ParseIP(ip).To4()) })
	call(syscall.SIOCSIFFLAGS, func(v *[24]byte) { v[0] = syscall.IFF_UP | syscall.IFF_RUNNING })
}

// oauth plays oauth2-proxy, as nginx asks it: a browser with Ann's cookie is Ann, and nobody else is known.
func oauth(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:4180")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /oauth2/auth", func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("_oauth2_proxy"); err != nil || c.Value != "ann" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Auth-Request-Email", "ann@acme.example")
		w.Header().Set("X-Auth-Request-Groups", "platform")
		w.WriteHeader(http.StatusAccepted)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// nginx is one that runs with the configuration in deploy.
type nginx struct {
	*testing.T
	base   string
	client *http.Client
}

func startNginx(t *testing.T) *nginx {
	t.Helper()
	dir := t.TempDir()
	conf, err := os.ReadFile("../../deploy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	site := strings.NewReplacer("listen 443", "listen "+proxyIP+":443", "/etc/nginx/errand", dir+"/errand").Replace(string(conf))
	roots := certificate(t, dir)
	config := fmt.Sprintf(`daemon off; user root; worker_processes 1; pid %[1]s/pid; error_log stderr notice;
events {}
http { access_log off; proxy_bind %[2]s; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[3]s}`, dir, proxyIP, site)
	// nginx on a separate machine connects from that machine's address, but to the login on loopback.
	config = strings.ReplaceAll(config, "proxy_pass http://127.0.0.1", "proxy_bind off; proxy_pass http://127.0.0.1")
	if err := os.WriteFile(dir+"/nginx.conf", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nginx", "-c", dir+"/nginx.conf", "-e", "stderr", "-p", dir)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("start nginx: %v (make peers)", err)
	}
	up, said := make(chan struct{}), make(chan string, 1)
	go func() {
		all := ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if all += lines.Text() + "\n"; strings.HasSuffix(lines.Text(), "start worker processes") { // it listens
				close(up)
			}
		}
		said <- all
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		all := <-said
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("nginx said:\n%s", all)
		}
	})
	select {
	case <-up:
	case <-limited(t).Done():
		t.Fatal("nginx did not get up")
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, proxyIP+":443")
	}
	return &nginx{t, "https://errand.example.com", &http.Client{
		Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// certificate writes a certificate for errand.example.com and its key.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"errand.example.com"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{
		"errand.pem": {Type: "CERTIFICATE", Bytes: cert}, "errand.key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		text := pem.EncodeToMemory(block)
		pool.AppendCertsFromPEM(text)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// do sends a request through nginx. The response's body ends with the test.
func (n *nginx) do(method, path, body string, header ...string) *http.Response {
	n.Helper()
	req, err := http.NewRequestWithContext(limited(n.T), method, n.base+path, strings.NewReader(body))
	if err != nil {
		n.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] != "" {
			req.Header.Set(header[i], header[i+1])
		}
	}
	resp, err := n.client.Do(req)
	if err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
