package agent

import (
	"cmp"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// privateRegistry is a registry over TLS that wants a credential.
type privateRegistry struct {
	*httptest.Server
	ca string // file with its certificate

	mu       sync.Mutex
	requests []string // methods and paths of accepted requests
	headers  []http.Header
}

const (
	registryToken = "registry-token-4711"
	registryLogin = "robot:registry-password-0815"
)

func newPrivateRegistry(t *testing.T) *privateRegistry {
	t.Helper()
	p, packages := &privateRegistry{ca: filepath.Join(t.TempDir(), "ca.pem")}, registries(t)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		if req.Header.Get("Authorization") != "Bearer "+registryToken && user+":"+password != registryLogin {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		p.mu.Lock()
		p.requests, p.headers = append(p.requests, req.Method+" "+req.URL.Path), append(p.headers, req.Header.Clone())
		p.mu.Unlock()
		w.Header().Set("Set-Cookie", "session=as-good-as-the-token")
		switch {
		case strings.HasPrefix(req.URL.Path, "/npm/echo"):
			_, _ = io.WriteString(w, "//registry/:_auth="+req.Header.Get("Authorization"))
		case req.URL.Path == "/npm/token":
			_, _ = io.WriteString(w, `{"token":"another-token-2342","expires_in":300}`)
		case strings.HasPrefix(req.URL.Path, "/npm/away"):
			http.Redirect(w, req, "https://evil.example/"+req.URL.Path, http.StatusFound)
		default:
			packages.ServeHTTP(w, req)
		}
	}))
	// The certificate of httptest is for example.com and names below it.
	p.StartTLS()
	t.Cleanup(p.Close)
	if err := os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: p.Certificate().Raw,
	}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// accepted returns the requests since the last call.
func (p *privateRegistry) accepted() (requests []string, headers []http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	requests, headers, p.requests, p.headers = p.requests, p.headers, nil, nil
	return requests, headers
}

// Runs install private packages with a credential that is nowhere in the run, and cannot publish with it.
func TestRegistries(t *testing.T) {
	t.Parallel()
	reg := newPrivateRegistry(t)
	at := "registry.example.com:" + port(reg.Listener.Addr())
	base := "https://" + at
	vars := map[string]string{"NPM_TOKEN": registryToken, "GO_LOGIN": registryLogin, "NODE_EXTRA_CA_CERTS": reg.ca}
	getenv := func(name string) string { return cmp.Or(vars[name], os.Getenv(name)) }
	const mark = "what the run can find"
	search := "\necho " + mark + "\n" + `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n'; env; grep -rs . /tmp "$HOME" 2>/dev/null`
	none := func(*Registry, *Spec) {}
	basic := func(r *Registry, _ *Spec) { r.Bearer, r.Basic = "", `{{env "GO_LOGIN"}}` }
	profile := func(p Profile) func(*Registry, *Spec) { return func(_ *Registry, s *Spec) { s.Profile = p } }
	for _, c := range []struct {
		name, script string
		want         string // part of the output
		requests     bool   // some arrive with the credential
		change       func(*Registry, *Spec)
	}{
		{"npm", `mkdir npm; cd npm; npm install --no-audit --no-fund --registry=` + base +
			`/npm/ pad && node -p 'require("pad")' && grep -c ` + base + ` package-lock.json`, "padded\n1", true, none},
		{"go", `mkdir go; cd go; printf 'module x\n\ngo 1.21\n\nrequire example.org/pad v1.0.0\n' >go.mod && ` +
			`GOTOOLCHAIN=local GOFLAGS=-modcacherw GOMODCACHE=$PWD/mod GOPROXY=` + base +
			`/go GOSUMDB=off go mod download example.org/pad && cat mod/example.org/pad@v1.0.0/pad.go`, "package pad", true, basic},
		{"pip", `mkdir pip; cd pip; python3 -m pip install --no-cache-dir --disable-pip-version-check --target . --index-url ` +
			base + `/simple pad; cat pad.py`, "padded", true, basic},
		{"headers of its own", `curl -sS -H 'Authorization: Bearer own' -H 'Cookie: a=b' -H 'X-HTTP-Method-Override: DELETE' ` +
			base + `/npm/pad`, `"pad"`, true, none},
		{
			"publishing", `for m in PUT POST DELETE PATCH; do curl -sS -X $m -d x ` + base + `/npm/pad; done`,
			"nothing can be published there", false, none,
		},
		{"another path", `curl -sS ` + base + `/go/example.org/pad/@v/list ` + base + `/npmx; curl -sS --path-as-is ` + base +
			`/npm/../go/x`, "do not read this path", false, func(r *Registry, _ *Spec) { r.Paths = []string{"/npm/"} }},
		{"an answer with the credential", `curl -sS ` + base + `/npm/echo`, "the answer shows the credential", true, basic},
		{"a token", `curl -sS ` + base + `/npm/token`, "the answer is a token", true, basic},
		{"a redirect to another host", `curl -sSL ` + base + `/npm/away`, "response 403", true, none},
		{"another repository besides", `curl -sSk ` + base + `/npm/pad`, "response 403", false, func(r *Registry, s *Spec) {
			r.Repositories, s.Repo, s.Also = []string{"acme/*"}, "acme/api", []Also{{Repo: "other/web"}}
		}},
		{"profile read", `curl -sSk ` + base + `/npm/pad`, "response 403", false, profile(Read)},
		{
			"an untrusted run", `curl -sSk ` + base + `/npm/pad; echo "<${SSL_CERT_FILE##*/}>"; env | grep -c certificates.pem`,
			">\n0", false, profile(Untrusted),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg.accepted()
			registry, spec := Registry{Host: at, Bearer: `{{env "NPM_TOKEN"}}`}, Spec{Profile: Write}
			c.change(&registry, &spec)
			inSandbox(t, "shell", func(t *testing.T, b *bench) {
				newWorld(t).install(b)
				spec.Prompt.Text, spec.ID = c.script+search, unique("registry-"+strings.ReplaceAll(c.name, " ", "-"))
				spec.Egress = Egress{Mode: hostlist.None}
				res := b.run(t, t.Context(), spec, &host{})
				printed, found, _ := strings.Cut(res.Text, mark)
				if !strings.Contains(printed, c.want) || !strings.Contains(found, "PATH=") {
					t.Errorf("it printed %q (%v, %+v) and found %q", printed, res.Error, res.Egress, found)
				}
				requests, headers := reg.accepted()
				if (len(requests) > 0) != c.requests || slices.ContainsFunc(requests, func(r string) bool {
					return !strings.HasPrefix(r, "GET /") && !strings.HasPrefix(r, "HEAD /")
				}) {
					t.Errorf("%q arrived", requests)
				}
				for _, h := range headers {
					if h.Get("Cookie")+h.Get("X-Http-Method-Override") != "" {
						t.Errorf("headers %v", h)
					}
				}
				log, err := os.ReadFile(b.logPath(spec.ID, ".ndjson"))
				if err != nil {
					t.Fatal(err)
				}
				for _, secret := range append(RegistrySecrets(b.cfg.Registries, b.getenv),
					"as-good-as-the-token", "another-token-2342") {
					if strings.Contains(res.Text+string(log), secret) {
						t.Errorf("the run has seen %q", secret)
					}
				}
			}, gated, func(cfg *Config) {
				cfg.Getenv, cfg.Registries = getenv, []Registry{registry}
				cfg.Redactor = nil // so that nothing hides what is there
			})
		})
	}
}

// A script has the registries of its repository.
func TestRegistryOfAScript(t *testing.T) {
	t.Parallel()
	reg := newPrivateRegistry(t)
	at := "registry.example.com:" + port(reg.Listener.Addr())
	inSandbox(t, "", func(t *testing.T, b *bench) {
		newWorld(t).install(b)
		for repos, want := range map[string]string{
			"acme/api": `"pad"`, "other/api": "response 403", "acme/api acme/web": `"pad"`,
			"acme/api other/web": "response 403",
		} {
			main, other, _ := strings.Cut(repos, " ")
			script := Script{
				ID: unique("registry-script"), Repo: main, Dir: b.dir, Line: "curl -sS https://" + at + "/npm/pad",
			}
			if other != "" {
				script.Also = []Also{{Repo: other}}
			}
			s, err := b.Script(t.Context(), script)
			if err != nil || !strings.Contains(s.Output, want) {
				t.Errorf("%s: %+v, %v", repos, s, err)
			}
		}
		// Java trusts the same certificates as other programs.
		s, err := b.Script(t.Context(), Script{
			ID: unique("registry-java"), Repo: "acme/api", Dir: b.dir,
			Line: `grep -c BEGIN "$SSL_CERT_FILE"; for o in $MAVEN_OPTS; do case $o in *.trustStorePassword=*) p=${o#*=};; *.trustStore=*) f=${o#*=};; esac; done; echo "$p"; cp "$f" store.p12`,
		})
		var known int
		var password string
		if n, scan := fmt.Sscan(s.Output, &known, &password); n != 2 || err != nil {
			t.Fatalf("%q: %v, %v", s.Output, scan, err)
		}
		store, err := os.ReadFile(filepath.Join(b.dir, "store.p12"))
		if err != nil {
			t.Fatal(err)
		}
		certs, err := pkcs12.DecodeTrustStore(store, password)
		if err != nil || len(certs) != known || !slices.ContainsFunc(certs, reg.Certificate().Equal) {
			t.Errorf("Java trusts %d certificates, others %d: %v", len(certs), known, err)
		}
	}, func(cfg *Config) {
		cfg.Registries = []Registry{{Host: at, Bearer: registryToken, Repositories: []string{"acme/*"}}}
		ca := map[string]string{"NODE_EXTRA_CA_CERTS": reg.ca}
		cfg.Getenv = func(name string) string { return cmp.Or(ca[name], os.Getenv(name)) }
	})
}

func TestCheckRegistries(t *testing.T) {
	t.Parallel()
	getenv := lookup(map[string]string{"TOKEN": "t", "LOGIN": "user:a-password", "LINES": "a\nb"})
	for _, c := range []struct {
		r     Registry
		wrong string
	}{
		{Registry{Host: "npm.example", Bearer: `{{env "TOKEN"}}`}, ""},
		{Registry{
			Host: "npm.example:8443", Basic: `{{env "LOGIN"}}`, Repositories: []string{"acme/*"},
			Paths: []string{"/npm"},
		}, ""},
		{Registry{Host: "https://npm.example", Bearer: "x"}, "is not a host"},
		{Registry{Host: "*.example", Bearer: "x"}, "is not a host"},
		{Registry{Bearer: "x"}, "is not a host"},
		{Registry{Host: "npm.example"}, "no credential"},
		{Registry{Host: "npm.example", Bearer: "x", Basic: "a:b"}, "or two"},
		{Registry{Host: "npm.example", Bearer: `{{env "NONE"}}`}, "NONE is not set"},
		{Registry{Host: "npm.example", Bearer: `{{env "LINES"}}`}, "more than one line"},
		{Registry{Host: "npm.example", Basic: `{{env "TOKEN"}}`}, "user:password"},
		{Registry{Host: "npm.example", Bearer: "x", Repositories: []string{"["}}, "not a pattern"},
		{Registry{Host: "npm.example", Bearer: "x", Paths: []string{"npm"}}, "begin with a slash"},
	} {
		errs := CheckRegistries([]Registry{c.r}, getenv)
		if c.wrong == "" && len(errs) > 0 ||
			c.wrong != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), c.wrong)) {
			t.Errorf("%+v: %v", c.r, errs)
		}
	}
	got := RegistrySecrets([]Registry{{Host: "npm.example", Basic: `{{env "LOGIN"}}`}}, getenv)
	if want := []string{"user:a-password", "dXNlcjphLXBhc3N3b3Jk", "a-password"}; !slices.Equal(got, want) {
		t.Errorf("secrets %q", got)
	}
}
