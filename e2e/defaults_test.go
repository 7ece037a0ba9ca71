//go:build container

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// surroundings is what the default installations meet: GitHub with two repositories, and a private registry.
type surroundings struct {
	github   *githubfake.Server
	registry *httptest.Server
	marker   string // the content of a file of the repository acme/secret
	env      []string
}

const registrySecret = "registry-token-4711"

// surround starts what an installation meets and writes its errand.yaml, which sets nothing that has a default.
func (e *engine) surround() *surroundings {
	e.Helper()
	github, err := githubfake.New(githubfake.Config{})
	if err != nil {
		e.Fatal(err)
	}
	s := &surroundings{github: github, marker: rand.Text()}
	e.Cleanup(github.Close)
	for name, files := range map[string]map[string]string{
		"payments": {"CLAUDE.md": "Count in cents-only.\n", "total.go": "package total\n"},
		"secret":   {"plan.txt": s.marker + "\n"},
	} {
		if _, err := github.CreateRepo("acme", name, files); err != nil {
			e.Fatal(err)
		}
	}
	s.registry = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+registrySecret {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, "a package")
	}))
	ca := e.startTLS(s.registry)
	shared := filepath.Join(e.dir, "root", "opt")
	yaml := fmt.Sprintf("repositories: {acme/payments: {}, acme/secret: {}}\n"+
		"registries:\n  - host: %q\n    bearer: '{{env \"REGISTRY_TOKEN\"}}'\n", s.registry.Listener.Addr())
	for name, text := range map[string]string{"errand.yaml": yaml, "ca.pem": ca} {
		if err := os.WriteFile(filepath.Join(shared, name), []byte(text), 0o644); err != nil {
			e.Fatal(err)
		}
	}
	s.env = []string{
		"GITHUB_API_URL=" + github.APIURL(), "GITHUB_URL=" + github.URL(), "GITHUB_TOKEN=ghp_test",
		"GITHUB_WEBHOOK_SECRET=github-secret", "REGISTRY_TOKEN=" + registrySecret, "ERRAND_RUN_MEMORY_GB=1",
		"ERRAND_CONSOLE_TOKEN=container-token-0123456789", "ERRAND_HTTP_ADDR=127.0.0.1:0",
		"ERRAND_WORKER_ADDR=127.0.0.1:0",
	}
	return s
}

// startTLS starts a server on 127.0.0.2, which is no address of the run's own network, and returns its certificate.
func (e *engine) startTLS(server *httptest.Server) (ca string) {
	e.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		e.Fatal(err)
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)},
		IsCA: true, BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
	if err != nil {
		e.Fatal(err)
	}
	_ = server.Listener.Close()
	if server.Listener, err = net.Listen("tcp", "127.0.0.2:0"); err != nil {
		e.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	server.StartTLS()
	e.Cleanup(server.Close)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
}

// installation starts an installation's program with the default settings in its own surroundings.
type installation struct {
	name  string
	start func(e *engine, s *surroundings) *container
}

var installations = []installation{
	{"`docker compose up`", func(e *engine, s *surroundings) *container {
		return e.start("compose", s.contained(), nil, "worker", "-standalone")
	}},
	{"the chart", func(e *engine, s *surroundings) *container {
		return e.start("chart", s.contained(), e.chart, "worker", "-standalone")
	}},
	{"`make run`", func(e *engine, s *surroundings) *container { return e.machine(s) }},
}

// contained are the variables of a container, in which /opt is the directory that the engine fills.
func (s *surroundings) contained() []string {
	return append(s.env, "ERRAND_CONFIG=/opt/errand.yaml", "NODE_EXTRA_CA_CERTS=/opt/ca.pem")
}

// chart gives a container what the chart's worker has by default: a user namespace, and the security contexts of
// deploy/kubernetes, which e2e/proof holds to the chart.
func (e *engine) chart(config oci) {
	e.Helper()
	pod := loadCluster(e.T).deployments["errand-worker"].Spec.Template.Spec
	own := pod.Containers[0].SecurityContext
	if pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined || pod.HostUsers == nil ||
		*pod.HostUsers || *own.ProcMount != corev1.UnmaskedProcMount || *own.AllowPrivilegeEscalation {
		e.Fatal("this test does not know the security context of the chart's worker")
	}
	linux := config["linux"].(oci)
	delete(linux, "seccomp")
	delete(linux, "maskedPaths")
	delete(linux, "readonlyPaths")
	config["process"].(oci)["noNewPrivileges"] = true
	mapping := []oci{{"containerID": 0, "hostID": 100000, "size": 65536}}
	linux["uidMappings"], linux["gidMappings"] = mapping, mapping
	linux["namespaces"] = append(linux["namespaces"].([]oci), oci{"type": "user"})
	for i, m := range config["mounts"].([]any) {
		switch at, _ := m.(oci)["destination"].(string); at {
		case "/sys": // the network is the machine's, so its sysfs cannot be mounted in a user namespace
			config["mounts"].([]any)[i] = oci{
				"type": "bind", "source": at, "destination": at, "options": []string{"rbind", "ro"},
			}
		case "/var/lib/errand":
			if err := os.Chown(m.(oci)["source"].(string), 110001, 110001); err != nil {
				e.Fatal(err)
			}
		}
	}
}

// machine starts the worker on this machine, as a separate user.
func (e *engine) machine(s *surroundings) *container {
	e.Helper()
	home := filepath.Join(e.dir, "home")
	cli, err := exec.LookPath("claude")
	if err == nil {
		cli, err = filepath.EvalSymlinks(cli)
	}
	if err == nil {
		err = os.Mkdir(home, 0o700)
	}
	if err == nil {
		err = os.Chown(home, 10001, 10001)
	}
	if err != nil {
		e.Fatal(err)
	}
	opt := filepath.Join(e.dir, "root", "opt")
	install := exec.Command("install", "-m", "755", cli, filepath.Join(opt, "bin", "claude"))
	if out, err := install.CombinedOutput(); err != nil {
		e.Fatalf("%v\n%s", err, out)
	}
	c := &container{ended: make(chan struct{}), cmd: exec.Command(filepath.Join(opt, "bin", "worker"), "-standalone")}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.Dir = c, c, home
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 10001, Gid: 10001}}
	c.cmd.Env = append([]string{
		"PATH=" + filepath.Join(opt, "bin") + ":/usr/bin:/bin", "HOME=" + home,
		"ERRAND_STATE_DIR=" + filepath.Join(home, "state"),
		"ANTHROPIC_API_KEY=sk-ant-container", "ANTHROPIC_BASE_URL=" + e.model.URL(),
		"ERRAND_CONFIG=" + filepath.Join(opt, "errand.yaml"), "NODE_EXTRA_CA_CERTS=" + filepath.Join(opt, "ca.pem"),
	}, s.env...)
	e.run("machine", c)
	return c
}

// probe is a command of an agent. What it prints does not stand in it in one piece.
const probe = `fetch() { python3 -c 'import sys, urllib.request
try: print(urllib.request.urlopen(sys.argv[1], timeout=20).status)
except Exception as e: print(getattr(e, "code", e))' "$1"; }
echo "work""ers: $(cat /proc/[0-9]*/comm | grep -c '^worker$')"
word=%[3]s''%[4]s
echo "other re""pository: $(grep -rlsa -e $word /etc /home /opt /root /run /tmp /var | wc -l)"
echo "unli""sted: $(fetch https://unlisted.example/)"
echo "loop""back: $(python3 -c 'import socket; print(socket.socket().connect_ex(("127.0.0.1", %[2]s)))')"
echo "regis""try: $(fetch https://%[1]s/npm/pad)"
seen=$( (env; cat /proc/[0-9]*/environ | tr '\0' '\n'; grep -rs . /tmp "$HOME") 2>/dev/null)
echo "creden""tial: $(echo "$seen" | grep -cae registry-tok''en)"`

// hog is a command that uses more memory than a run may have here.
const hog = `python3 -c 'b = bytearray(1300 << 20); b[::4096] = b"x" * len(b[::4096]); import time; time.sleep(300)'`

// promises are the rows of the table in docs/deploy.md, with what the agent or its model must have seen.
var promises = []struct{ name, seen string }{
	{"the repository's `CLAUDE.md` reaches the model", "cents-only"},
	{"a run sees no process of the worker", "workers: 0"},
	{"it sees no file of another repository or task", "other repository: 0"},
	{"the egress list is in force", "unlisted: <urlopen error Tunnel connection failed: 403 Forbidden>"},
	{"there is no way around the list", "loopback: 111"},
	{"a person without write access on GitHub is refused", "Only people with write access can use errand here."},
	{"nothing of their request reaches a model", "words of a stranger at the model: 0"},
	{"a private registry works", "registry: 200"},
	{"the registry's credential is nowhere in the run", "credential: 0"},
	{"a run with too much memory is ended", "The agent was stopped because its commands used more memory"},
}

// TestDefaults holds every default installation to the promises, and docs/deploy.md to have them all.
func TestDefaults(t *testing.T) {
	t.Parallel()
	documents, err := os.ReadFile("../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	head := "| |"
	for _, i := range installations {
		head += " " + i.name + " |"
	}
	_, table, found := strings.Cut(string(documents), head+"\n")
	if !found {
		t.Errorf("docs/deploy.md has no table %s", head)
	}
	for _, p := range promises {
		if row := "| " + p.name + strings.Repeat(" | yes", len(installations)) + " |\n"; !strings.Contains(table, row) {
			t.Errorf("docs/deploy.md lacks %s", row)
		}
	}
	e := newEngine(t)
	for _, i := range installations {
		t.Run(strings.Trim(i.name, "`"), func(t *testing.T) { e.in(t).keepsPromises(i) })
	}
}

func (e *engine) keepsPromises(i installation) {
	e.Helper()
	e.model = modelfake.New()
	e.Cleanup(e.model.Close)
	s := e.surround()
	e.model.Answer("look at the plan", modelfake.Turn{Text: "Seen."})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(e.model.URL(), "http://"))
	everything := fmt.Sprintf(probe, s.registry.Listener.Addr(), port, s.marker[:9], s.marker[9:])
	e.model.Answer("try everything", modelfake.Turn{Tools: bash(everything)}, modelfake.Turn{Text: "Tried."})
	e.model.Answer("use much memory", modelfake.Turn{Tools: bash(hog)}, modelfake.Turn{Text: "Used."})
	c := i.start(e, s)
	base := e.console(c)
	if base == "" {
		e.Fatalf("%v\n%s", c.err, c.said())
	}
	seen := e.stranger(s, base) + e.askIn(base, "acme/secret", "look at the plan")
	seen += e.askIn(base, "acme/payments", "try everything") + e.askIn(base, "acme/payments", "use much memory")
	requests := ""
	for _, r := range e.model.Requests() {
		requests += string(r.Body)
	}
	seen += fmt.Sprintf("words of a stranger at the model: %d\n", strings.Count(requests, strangers)) + requests
	for _, p := range promises {
		if !strings.Contains(seen, p.seen) {
			e.Errorf("%s: nobody saw %q", p.name, p.seen)
		}
	}
	e.show(seen)
}

// strangers are words of a person without rights.
const strangers = "show-me-all-secrets"

// stranger asks for something on GitHub as a person without write access, and returns the answer.
func (e *engine) stranger(s *surroundings, base string) (answer string) {
	e.Helper()
	s.github.Deliver(base + "/github/webhook")
	ctx := await.Context(e)
	issue := githubfake.Issue{Repo: "acme/payments", User: "mallory", Title: "A question", Body: "What is this?"}
	number, err := s.github.OpenIssue(ctx, issue)
	if err == nil {
		_, err = s.github.Comment(ctx, issue.Repo, number, issue.User, "@errand "+strangers)
	}
	if err != nil {
		e.Fatal(err)
	}
	await.Until(e, "the answer to a stranger", func() bool {
		for _, c := range s.github.Comments(issue.Repo, number)[1:] {
			answer += c.Body + "\n"
		}
		return answer != ""
	})
	return answer
}

func bash(command string) []modelfake.ToolCall {
	return []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": command}}}
}
