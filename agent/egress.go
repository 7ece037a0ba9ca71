package agent

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/errand-fleet/errand/agent/internal/egress"
	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/internal/hostlist"
)

// Egress says which hosts a run with its own network reaches, in addition to the model and the servers configured for
// its profile. The zero value allows none. A run shares the machine's network, and Egress has no effect, without a
// sandbox, if a policy of the machine forbids networks of runs, and if the CLI asks the model directly.
type Egress = hostlist.List

// EgressReport lists the hosts that a run has reached or tried to reach.
type EgressReport = egress.Report

// EgressRefusal is a host that a run could not reach.
type EgressRefusal = egress.Refusal

// egressURL is where the proxy of a run with its own network listens.
var egressURL = fmt.Sprintf("http://127.0.0.1:%d", sandbox.EgressPort)

// ports lists where a run listens in its own network, for the worker to answer: the gateway if it has one, and the
// egress proxy and servers on this machine unless it must reach nothing else.
func (r *Runner) ports(s Spec, gated bool) (ports []int) {
	if gated {
		ports = append(ports, sandbox.GatewayPort)
	}
	if s.Profile == Untrusted {
		return ports
	}
	ports = append(ports, sandbox.EgressPort)
	for _, u := range r.serverURLs(s) {
		port, err := strconv.Atoi(u.Port())
		if onLoopback(u) && err == nil && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// serverURLs returns the addresses of the configured servers that a run connects to.
func (r *Runner) serverURLs(s Spec) (list []*url.URL) {
	for _, m := range r.cfg.Servers {
		if u, err := url.Parse(m.URL); err == nil && u.Host != "" && m.Serves(s.Profile) && !s.inert && !s.script {
			list = append(list, u)
		}
	}
	return list
}

// onLoopback reports whether runs connect to an address of this machine without a proxy.
func onLoopback(u *url.URL) bool { return u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost" }

// allowed returns what a run may reach: an operator who configures a server allows its host.
func (r *Runner) allowed(s Spec) egress.Rules {
	list := s.Egress
	list.Private = slices.Clone(list.Private)
	for _, u := range r.serverURLs(s) {
		if !onLoopback(u) {
			port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
			list.Private = append(list.Private, net.JoinHostPort(u.Hostname(), port))
		}
	}
	return egress.Rules{List: list, Registries: r.registries(s)}
}

// serve answers on the listeners of a run's ports.
func serve(ports []int, listeners []net.Listener, gate *gateway.Gateway, proxy *egress.Proxy) {
	for i, l := range listeners {
		switch port := ports[i]; port {
		case sandbox.GatewayPort:
			gate.Serve(l)
		case sandbox.EgressPort:
			proxy.Serve(l)
		default:
			proxy.Relay(l, fmt.Sprintf("localhost:%d", port))
		}
	}
}

// proxyVariables are the inherited variables that name the worker's own proxy.
var proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}

// enclose replaces the worker's proxy by that of the run in the environment of a run with its own network, and names
// the certificates of its registries.
func (r *Runner) enclose(env map[string]string, s Spec, d session.Dirs) {
	for _, name := range proxyVariables {
		delete(env, name)
	}
	if s.Profile == Untrusted {
		return
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env[name] = egressURL
	}
	env["NO_PROXY"], env["no_proxy"] = "localhost,::1", "localhost,::1" // what the run itself serves
	env["NODE_USE_ENV_PROXY"] = "1"                                     // Node itself reads the variables only then
	java := fmt.Sprintf("-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=%[1]d "+
		"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=%[1]d", sandbox.EgressPort)
	java += " -Duser.home=" + env["HOME"] // Java asks the system for the home, which a run cannot write
	if len(r.registries(s)) > 0 {
		for _, name := range trustVariables {
			env[name] = filepath.Join(d.Root, trustFile)
		}
		java += " -Djavax.net.ssl.trustStoreType=PKCS12" +
			" -Djavax.net.ssl.trustStore=" + filepath.Join(d.Root, javaTrustFile) +
			" -Djavax.net.ssl.trustStorePassword=" + javaTrustPassword
	}
	for name, options := range map[string]string{
		"GRADLE_OPTS": java, "MAVEN_OPTS": java + " -Daether.connector.http.useSystemProperties=true",
	} {
		if own := env[name]; own != "" {
			options += " " + own
		}
		env[name] = options
	}
}
