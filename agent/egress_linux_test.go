package agent

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/egress"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/hostlist"
)

// publicAddr stands for an address on the Internet.
var publicAddr = netip.MustParseAddr("127.0.0.9")

// world is what a run may try to reach: hosts and servers on this machine, each of which records who arrives.
type world struct {
	names    map[string][]string // addresses of names, one more for each query
	allowed  *httptest.Server    // at publicAddr
	secret   *httptest.Server    // at 127.0.0.1
	udp      net.PacketConn
	unix     string // path of a Unix socket
	abstract string // name of an abstract one
	dns      net.PacketConn

	mu      sync.Mutex
	queries map[string]int
	arrived []string
}

// newWorld serves everything until the end of the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{queries: map[string]int{}, names: map[string][]string{
		"allowed.example.": {publicAddr.String()}, "secret.example.": {"127.0.0.1"},
		"metadata.example.": {"169.254.169.254"}, "rebind.example.": {publicAddr.String(), "127.0.0.1"},
		"zero.example.": {"0.0.0.0"}, "registry.example.": {"127.0.0.1"}, "registry.example.com.": {"127.0.0.1"},
	}}
	w.allowed = w.server(t, publicAddr.String(), "allowed")
	w.secret = w.server(t, "127.0.0.1", "secret")
	w.udp, w.dns = packets(t), packets(t)
	go w.receive(w.udp, "udp")
	go w.resolve()
	w.unix = filepath.Join(agenttest.ShortTemp(t), "socket")
	w.abstract = w.unix // in another name space
	for name, at := range map[string]string{"unix": w.unix, "abstract": "@" + w.abstract} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "unix", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.arrive(name)
				_ = c.Close()
			}
		}()
	}
	return w
}

func packets(t *testing.T) net.PacketConn {
	t.Helper()
	c, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (w *world) server(t *testing.T, ip, name string) *httptest.Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", ip+":0")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w.arrive(name + " " + req.Host + req.URL.Path)
		if req.URL.Path == "/redirect" {
			http.Redirect(rw, req, "http://secret.example:"+port(w.secret.Listener.Addr())+"/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(rw, "hello from "+name+"\n")
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func port(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

func (w *world) arrive(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived = append(w.arrived, what)
}

// came returns what has arrived since the last call.
func (w *world) came() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.arrived
	w.arrived = nil
	return list
}

func (w *world) receive(c net.PacketConn, name string) {
	for b := make([]byte, 1500); ; {
		if _, _, err := c.ReadFrom(b); err != nil {
			return
		}
		w.arrive(name)
	}
}

// resolve answers the worker's questions for addresses.
func (w *world) resolve() {
	for b := make([]byte, 1500); ; {
		n, from, err := w.dns.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			w.arrive("dns")
			continue
		}
		q := m.Questions[0]
		m.Response, m.Authoritative, m.Additionals = true, true, nil
		ip, err := netip.ParseAddr(w.address(q))
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
		switch {
		case err != nil:
			m.RCode = dnsmessage.RCodeNameError
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}}}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = w.dns.WriteTo(answer, from)
		}
	}
}

// address returns the address of a name. Those with several have another one from the second query for an IPv4 address
// on.
func (w *world) address(q dnsmessage.Question) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.names[q.Name.String()]
	if len(list) == 0 {
		return ""
	}
	if q.Type == dnsmessage.TypeA {
		w.queries[q.Name.String()]++
	}
	return list[min(max(w.queries[q.Name.String()]-1, 0), len(list)-1)]
}

// install makes the runs of a bench resolve names in the world, and takes publicAddr for a public address.
func (w *world) install(b *bench) {
	b.network = egress.NewNetwork(egress.Config{
		Getenv: b.getenv, Log: b.log,
		Resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "udp", w.dns.LocalAddr().String())
		}},
		Public: func(ip netip.Addr) bool { return ip == publicAddr || egress.Public(ip) },
	})
}

// fill replaces the places of the world in a script.
func (w *world) fill(script string) string {
	return strings.NewReplacer(
		"PROXY", strings.TrimPrefix(egressURL, "http://"), "ALLOWED",
		"allowed.example:"+port(w.allowed.Listener.Addr()),
		"SECRET", port(w.secret.Listener.Addr()), "PUBLIC", port(w.allowed.Listener.Addr()), "UDP",
		port(w.udp.LocalAddr()), "DNS", port(w.dns.LocalAddr()), "UNIX", w.unix, "ABSTRACT", w.abstract,
	).Replace(script)
}

// gated has runs with a gateway, whose model nobody asks.
func gated(c *Config) {
	c.Credential, c.BaseURL = Credential{AuthToken: "sk-ant-test-1"}, "http://127.0.0.1:1"
}

// ask sends the request $1 to the proxy and prints the answer.
const ask = `ask() { exec 7<>/dev/tcp/${p%:*}/${p#*:} && printf "$1" >&7 && timeout 5 cat <&7; exec 7<&-; }; p=PROXY; `

// TestAttempts is a run that may reach one host and tries to reach others by every way that its authors could think of.
func TestAttempts(t *testing.T) {
	t.Parallel()
	attempts := []struct {
		name, script string
		refused      string // part of the output
		arrives      string // of the allowed host only, if the attempt is a request to it
	}{
		{
			"the resolver of the machine",
			`exec 3<>/dev/udp/127.0.0.1/DNS && printf hello >&3; read -t 2 x <&3 || echo closed`, "closed", "",
		},
		{"a public resolver", `exec 3<>/dev/udp/8.8.8.8/53 || echo closed`, "closed", ""},
		{"a name without the proxy", `curl -sS --noproxy '*' http://ALLOWED/`, "Could not resolve host", ""},
		{"UDP", `exec 3<>/dev/udp/127.0.0.1/UDP && printf hello >&3; read -t 2 x <&3 || echo closed`, "closed", ""},
		{"a raw address", `exec 3<>/dev/tcp/1.1.1.1/443 || echo closed`, "closed", ""},
		{"loopback of the machine", `exec 3<>/dev/tcp/127.0.0.1/SECRET || echo closed`, "closed", ""},
		{"IPv6 of the machine", `exec 3<>/dev/tcp/::1/SECRET || echo closed`, "closed", ""},
		{"a raw IPv6 address", `exec 3<>/dev/tcp/2606:4700:4700::1111/443 || echo closed`, "closed", ""},
		{
			"no proxy variables", `env -u http_proxy -u HTTP_PROXY curl -sS http://127.0.0.1:SECRET/`,
			"Failed to connect", "",
		},
		{
			"a host that is not listed", `curl -sS http://secret.example:SECRET/`,
			"which the egress list does not allow", "",
		},
		{"a tunnel to a host that is not listed", `curl -sS -p http://secret.example:SECRET/`, "response 403", ""},
		{"another port", `curl -sS -p http://allowed.example:SECRET/`, "response 403", ""},
		{
			"a plain request to another port", `curl -sS http://allowed.example:SECRET/`,
			"which the egress list does not allow", "",
		},
		{
			"the metadata service", `curl -sS http://169.254.169.254/latest/; curl -sS -p http://169.254.169.254/`,
			"response 403", "",
		},
		{"the metadata service by name", `curl -sS http://metadata.example/latest/`, "which has a private address", ""},
		{"the metadata service, raw", `exec 3<>/dev/tcp/169.254.169.254/80 || echo closed`, "closed", ""},
		{"the unspecified address by name", `curl -sS -p http://zero.example:SECRET/`, "response 403", ""},
		{
			"loopback by address",
			`curl -sS -x http://PROXY http://127.0.0.1:SECRET/; curl -sS --noproxy x -p -x http://PROXY http://127.0.0.1:SECRET/`, "response 403", "",
		},
		{
			"loopback by name", `curl -sS --noproxy x -x http://PROXY http://localhost:SECRET/`,
			"which the egress list does not allow", "",
		},
		{
			"rebinding", `curl -sS -p http://rebind.example:PUBLIC/one; curl -sS -p http://rebind.example:PUBLIC/two`,
			"response 403", "allowed rebind.example:PUBLIC/one",
		},
		{
			"a redirect to another host", `curl -sSL http://ALLOWED/redirect`, "which the egress list does not allow",
			"allowed ALLOWED/redirect",
		},
		{
			"another Host header", ask + `ask 'GET http://secret.example:SECRET/ HTTP/1.1\r\nHost: ALLOWED\r\n\r\n'`,
			"403 Forbidden", "",
		},
		{
			"another Host header for the allowed host",
			ask + `ask 'GET http://ALLOWED/x HTTP/1.0\r\nHost: secret.example\r\n\r\n'`, "200 OK", "allowed ALLOWED/x",
		},
		{
			"a user in CONNECT",
			ask +
				`ask 'CONNECT ALLOWED@secret.example:SECRET HTTP/1.1\r\n\r\n'; ask 'CONNECT x@ALLOWED HTTP/1.1\r\nHost: x\r\n\r\n'`, "403 Forbidden", "",
		},
		{
			"a user in an address", ask + `ask 'GET http://ALLOWED@secret.example:SECRET/ HTTP/1.1\r\nHost: x\r\n\r\n'`,
			"400 Bad Request", "",
		},
		{
			"capitals and a dot", ask + `ask 'CONNECT LOCALHOST.:SECRET HTTP/1.1\r\nHost: x\r\n\r\n'`,
			"403 Forbidden", "",
		},
		{
			"a mapped address", ask + `ask 'CONNECT [::ffff:127.0.0.1]:SECRET HTTP/1.1\r\nHost: x\r\n\r\n'`,
			"403 Forbidden", "",
		},
		{"a decimal address", ask + `ask 'CONNECT 2130706433:SECRET HTTP/1.1\r\nHost: x\r\n\r\n'`, "403 Forbidden", ""},
		{"an octal address", ask + `ask 'CONNECT 0177.0.0.1:SECRET HTTP/1.1\r\nHost: x\r\n\r\n'`, "403 Forbidden", ""},
		{"a short address", ask + `ask 'GET http://127.1:SECRET/ HTTP/1.1\r\nHost: x\r\n\r\n'`, "403 Forbidden", ""},
		{"another scheme", ask + `ask 'GET ftp://ALLOWED/ HTTP/1.1\r\nHost: x\r\n\r\n'`, "400 Bad Request", ""},
		{"no scheme", ask + `ask 'GET / HTTP/1.1\r\nHost: ALLOWED\r\n\r\n'`, "400 Bad Request", ""},
		{
			"smuggling behind a length and chunks",
			ask +
				`ask 'POST http://ALLOWED/one HTTP/1.1\r\nHost: x\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://secret.example:SECRET/ HTTP/1.1\r\nHost: x\r\n\r\n'`,
			"403 Forbidden", "allowed ALLOWED/one",
		},
		{
			"smuggling in a header",
			ask +
				`ask 'GET http://ALLOWED/ HTTP/1.1\r\nHost: x\r\nX: y\r\n z\nGET http://secret.example:SECRET/ HTTP/1.1\r\n\r\n'`, "400 Bad Request", "",
		},
		{
			"the gateway as a proxy", `curl -sS -x $ANTHROPIC_BASE_URL http://secret.example:SECRET/`,
			"only the token of that run", "",
		},
		{
			"the gateway as a tunnel", `curl -sS -p -x $ANTHROPIC_BASE_URL http://secret.example:SECRET/`,
			"CONNECT tunnel failed", "",
		},
		{
			"the gateway with its token as a proxy",
			`read -r k < <(tr '\0' '\n' </proc/$PPID/environ | grep ^ANTHROPIC_AUTH_TOKEN= | cut -d= -f2); ` +
				`curl -sS -H "Authorization: Bearer $k" -x $ANTHROPIC_BASE_URL http://secret.example:SECRET/`,
			"404 page not found", "",
		},
		{"a Unix socket of the machine", `curl -sS --unix-socket UNIX http://x/`, "Failed to connect", ""},
		{
			"an abstract socket of the machine", `curl -sS --abstract-unix-socket ABSTRACT http://x/`,
			"Failed to connect", "",
		},
		{
			"very many connections", `p=PROXY; for i in {1..129}; do exec {fd}<>/dev/tcp/${p%:*}/${p#*:}; ` +
				`printf 'CONNECT ALLOWED HTTP/1.1\r\nHost: x\r\n\r\n' >&$fd; read -r line <&$fd; done; echo "$line"`,
			"503 Service Unavailable", "",
		},
	}
	inSandbox(t, "shell", func(t *testing.T, b *bench) {
		w := newWorld(t)
		w.install(b)
		egress := Egress{Mode: hostlist.Listed, Hosts: []string{
			w.fill("ALLOWED"), "metadata.example", w.fill("zero.example:SECRET"), w.fill("rebind.example:PUBLIC"),
		}}
		// The same list lets the run reach the host that it names.
		scripts := []string{w.fill(`curl -sS http://ALLOWED/ && curl -sS -p http://ALLOWED/`)}
		for _, c := range attempts {
			scripts = append(scripts, w.fill(c.script))
		}
		var came [][]string
		said, res := b.shells(t, Spec{Environment: Environment{Egress: egress}}, scripts,
			func() { came = append(came, w.came()) })
		if strings.Count(said[0], "hello from allowed") != 2 || len(came[0]) != 2 {
			t.Errorf("the allowed host: %q, %q", said[0], came[0])
		}
		if want := []string{w.fill("ALLOWED"), w.fill("rebind.example:PUBLIC")}; !slices.Equal(res.Egress.Reached, want) {
			t.Errorf("%+v", res.Egress)
		}
		said, came = said[1:], came[1:]
		for i, c := range attempts {
			if !strings.Contains(said[i], c.refused) {
				t.Errorf("%s: the run sees no refusal but %q", c.name, said[i])
			}
			var want []string
			if c.arrives != "" {
				want = []string{w.fill(c.arrives)}
			}
			if !slices.Equal(came[i], want) {
				t.Errorf("%s: %q arrived", c.name, came[i])
			}
		}
	}, gated)
}

// A tunnel to port 443 is for the host that it names. The worker's own proxy leads to the servers of the test, because
// they cannot have that port.
func TestNameInTheHandshake(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked, requests []string
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, req.TLS.ServerName)
		_, _ = io.WriteString(w, "hello\n")
	}))
	site.StartTLS()
	t.Cleanup(site.Close)
	company := companyProxy(t, func(target string) string {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, target)
		return site.Listener.Addr().String()
	})
	inSandbox(t, "shell", func(t *testing.T, b *bench) {
		egress := Egress{Mode: hostlist.Listed, Hosts: []string{"allowed.example", "9.9.9.9"}}
		attempts := []struct{ name, script, want string }{
			{"the host", `curl -sSk https://allowed.example/`, "hello"},
			{
				"another name", `curl -sSk --connect-to evil.example:443:allowed.example:443 https://evil.example/`,
				"SSL_ERROR|closed|reset|unexpected eof",
			},
			{
				"no name", `curl -sSk --connect-to 9.9.9.8:443:allowed.example:443 https://9.9.9.8/`,
				"SSL_ERROR|closed|reset|unexpected eof",
			},
			{"an address that is listed", `curl -sSk https://9.9.9.9/`, "hello"},
			{"no TLS", `curl -sS -p http://allowed.example:443/`, "Empty reply|reset|closed"},
			{"a host that is not listed", `curl -sSk https://evil.example/`, "response 403"},
		}
		var scripts []string
		for _, c := range attempts {
			scripts = append(scripts, c.script)
		}
		said, res := b.shells(t, Spec{Environment: Environment{Egress: egress}}, scripts, func() {})
		refused := 0
		for i, c := range attempts {
			if !slices.ContainsFunc(strings.Split(c.want, "|"), func(one string) bool {
				return strings.Contains(said[i], one)
			}) {
				t.Errorf("%s: %q", c.name, said[i])
			}
			if c.want != "hello" {
				refused++
			}
		}
		if e := res.Egress; e.Refusals != refused || len(e.Reached) != 2 {
			t.Errorf("%d were refused, but %+v", refused, e)
		}
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"allowed.example", ""}; !slices.Equal(requests, want) {
			t.Errorf("requests for %q arrived", requests)
		}
		if slices.ContainsFunc(asked, func(one string) bool {
			return one != "allowed.example:443" && one != "9.9.9.9:443"
		}) {
			t.Errorf("the worker's proxy was asked for %q", asked)
		}
	}, gated, func(c *Config) {
		c.Getenv = func(name string) string {
			if name == "HTTPS_PROXY" {
				return "http://user:word@" + company
			}
			return os.Getenv(name)
		}
	})
}

// companyProxy serves CONNECT with a password until the end of the test, and connects to where route says.
func companyProxy(t *testing.T, route func(target string) string) (addr string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.Header.Set("Authorization", req.Header.Get("Proxy-Authorization"))
		if user, password, _ := req.BasicAuth(); req.Method != http.MethodConnect || user != "user" ||
			password != "word" {
			http.Error(w, "who are you?", http.StatusProxyAuthRequired)
			return
		}
		to, err := new(net.Dialer).DialContext(req.Context(), "tcp", route(req.Host))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close()
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer from.Close()
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\nVia: company\r\n\r\n")
		go func() {
			_, _ = io.Copy(to, from)
			_ = to.Close()
		}()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// The run's log has a line for each refused host, the result has both lists, and they are bounded and redacted.
func TestReportOfARun(t *testing.T) {
	t.Parallel()
	inSandbox(t, "shell", func(t *testing.T, b *bench) {
		w := newWorld(t)
		w.install(b)
		script := `for i in {1..120}; do echo "url=http://h$i.example/"; done | curl -sSK - >/dev/null; ` +
			`curl -sS http://sk-ant-test-secret.example/ >/dev/null; curl -sS http://h1.example/ http://ALLOWED/`
		res := b.run(t, t.Context(), Spec{
			ID: unique("egress-report"), Profile: Write, Prompt: Message{Text: w.fill(script)},
			Environment: Environment{Egress: Egress{Mode: hostlist.Listed, Hosts: []string{w.fill("ALLOWED")}}},
		}, &host{})
		if e := res.Egress; e == nil || len(e.Refused) != 100 || e.Refusals != 122 || len(e.Reached) != 1 || e.Learn {
			t.Fatalf("%+v", e)
		}
		if n := strings.Count(b.read(t, "egress-report", ".log"),
			"refused a connection to h1.example, which the egress list does not allow"); n != 1 {
			t.Errorf("%d lines in the log", n)
		}
		res = b.run(t, t.Context(), Spec{
			Profile: Write, Prompt: Message{Text: "curl -sS http://sk-ant-test-secret/"},
		}, &host{})
		if e := res.Egress; e == nil || len(e.Refused) != 1 || strings.Contains(e.Refused[0].Host, "secret") {
			t.Errorf("%+v", e)
		}
		res = b.run(t, t.Context(), Spec{Profile: Write, Prompt: Message{Text: "true"}}, &host{})
		if res.Egress != nil {
			t.Errorf("a run that tries nothing: %+v", res.Egress)
		}
		s, err := b.Script(t.Context(), Script{
			ID: unique("egress-script"), Dir: b.dir, Line: w.fill("curl -sS http://ALLOWED/ http://h1.example/"),
			Environment: Environment{Egress: Egress{Mode: hostlist.Learn, Private: []string{w.fill("ALLOWED")}}},
		})
		if err != nil || !strings.Contains(s.Output, "hello from allowed") || !s.Egress.Learn ||
			!slices.Equal(s.Egress.Reached, []string{w.fill("ALLOWED")}) {
			t.Errorf("a script: %+v, %+v, %v", s, s.Egress, err)
		}
	}, gated)
}

// Java finds the proxy and the home by options, which a repository's own ones follow.
func TestOptionsOfJava(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, b *bench) {
		s, err := b.Script(t.Context(), Script{
			ID: unique("java"), Dir: b.dir, Environment: Environment{Env: map[string]string{"MAVEN_OPTS": "-Xmx1g"}},
			Line: `echo "$MAVEN_OPTS"; echo "${GRADLE_OPTS##*=} $HOME"`,
		})
		maven, gradle, _ := strings.Cut(s.Output, "\n")
		home := strings.Fields(gradle)
		if err != nil ||
			!strings.Contains(maven, "-Dhttps.proxyPort="+egressURL[strings.LastIndex(egressURL, ":")+1:]) ||
			!strings.HasSuffix(maven, " -Xmx1g") ||
			len(home) != 2 || home[0] != home[1] {
			t.Errorf("%q, %v", s.Output, err)
		}
	})
}

// The pinned CLI reaches configured servers, on this machine and at a private address, and fetches pages by the proxy.
// It tries to reach nothing by itself.
func TestCLIEgress(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, _ *bench) {
		w := newWorld(t)
		tell := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		mcp.AddTool(tell, &mcp.Tool{Name: "tell"},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "told"}}}, nil, nil
			})
		server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tell },
			&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}))
		t.Cleanup(server.Close)
		model := newModel(t, call("mcp__here__tell"), call("mcp__there__tell"),
			call("WebFetch", "url", "https://evil.example/page", "prompt", "x"), modelfake.Turn{Text: "Told."})
		there := "registry.example:" + port(server.Listener.Addr())
		r := newCLI(t, model, func(c *Config) {
			c.Sandbox = SandboxBwrap
			c.Servers = []MCPServer{
				{Name: "here", Type: ServerHTTP, URL: server.URL + "/mcp"},
				{Name: "there", Type: ServerHTTP, URL: "http://" + there + "/mcp"},
			}
			c.Env = map[string]string{"ENABLE_TOOL_SEARCH": "false"}
		})
		w.install(&bench{Runner: r})
		res := runCLI(t, r, Spec{ID: "egress-cli", Profile: Write}, refuse(t))
		if res.Outcome != Done || res.Text != "Told." {
			t.Fatalf("outcome %s, text %q, %v", res.Outcome, res.Text, res.Error)
		}
		results := answered(t, model)
		if len(results) != 3 || results[0] != "false told" || results[1] != "false told" ||
			!strings.HasPrefix(results[2], "true") {
			t.Errorf("the tools answered %q", results)
		}
		if e := res.Egress; e == nil || !slices.Equal(e.Reached, []string{there}) || len(e.Refused) != 1 ||
			e.Refused[0].Host != "evil.example" {
			t.Errorf("%+v", res.Egress)
		}
	})
}
