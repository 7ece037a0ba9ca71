package web

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/web/auth"
)

// through sends a request between two addresses, without a token.
func (h *harness) through(from, to, method, path string, hs ...string) *httptest.ResponseRecorder {
	h.Helper()
	addr, err := net.ResolveTCPAddr("tcp", to)
	if err != nil {
		h.Fatal(err)
	}
	req := h.request(method, path, "", append(hs, "Authorization", ""))
	req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(addr)))
	req.RemoteAddr = from
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, req)
	return w
}

func withProxy(c *Config) {
	c.Proxy = auth.Proxy{Header: "X-Forwarded-User", From: []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64"),
	}}
}

func TestProxyOpens(t *testing.T) {
	t.Parallel()
	const here = "198.51.100.1:8080"
	h := newHarness(t, withProxy)
	for name, tc := range map[string]struct {
		from, to, header string
		want             int
	}{
		"a person":                  {"192.0.2.7:1234", here, "ann@acme.test", 200},
		"by IPv6":                   {"[2001:db8::7]:1234", "[2001:db8:1::1]:8080", "ann@acme.test", 200},
		"by IPv4 in IPv6":           {"[::ffff:192.0.2.7]:1234", here, "ann@acme.test", 200},
		"nobody":                    {"192.0.2.7:1234", here, "", 401},
		"only space":                {"192.0.2.7:1234", here, " ", 401},
		"from elsewhere":            {"203.0.113.7:1234", here, "ann@acme.test", 401},
		"from loopback":             {"127.0.0.1:1234", here, "ann@acme.test", 401},
		"from this machine":         {"192.0.2.1:1234", "192.0.2.1:8080", "ann@acme.test", 401},
		"from this machine by IPv6": {"[::ffff:192.0.2.1]:1234", "192.0.2.1:8080", "ann@acme.test", 401},
		"no text":                   {"192.0.2.7:1234", here, "ann\u202e", 401},
		"too long":                  {"192.0.2.7:1234", here, strings.Repeat("a", 101), 401},
	} {
		if got := h.through(tc.from, tc.to, "GET", "/api/tasks", "X-Forwarded-User", tc.header); got.Code != tc.want {
			t.Errorf("%s: %d", name, got.Code)
		}
	}
	// With two names, one may be forged.
	req := h.request("GET", "/api/tasks", "", header{"Authorization", "", "X-Forwarded-User", "ann"})
	req.Header.Add("X-Forwarded-User", "eve")
	req.RemoteAddr = "192.0.2.7:1234"
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, req)
	if w.Code != http.StatusUnauthorized {
		t.Errorf("two names: %d", w.Code)
	}
	// The header is ignored if no proxy is configured.
	if got := newHarness(t).through("192.0.2.7:1234", here, "GET", "/api/tasks",
		"X-Forwarded-User", "ann"); got.Code != http.StatusUnauthorized {
		t.Errorf("no proxy: %d", got.Code)
	}
}

// An agent can connect from every address of its machine, also to another one of them.
func TestThisMachineIsNoProxy(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withProxy, func(c *Config) {
		c.Proxy.From = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	})
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	// No interface has this address as its own, and each connection from it is local.
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	for _, a := range all {
		addresses = append(addresses, netip.MustParsePrefix(a.String()).Addr())
	}
	for _, a := range addresses {
		from := netip.AddrPortFrom(a, 1234).String()
		got := h.through(from, "198.51.100.1:8080", "GET", "/api/tasks", "X-Forwarded-User", "ann")
		if got.Code != http.StatusUnauthorized {
			t.Errorf("from %s: %d", from, got.Code)
		}
	}
}

// Actions have the name of the person, and another site cannot act for them.
func TestProxySaysWhoActs(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := newHarness(t, withProxy, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	id := h.submit(1)
	act := func(what string, hs ...string) int {
		return h.through("192.0.2.7:1234", "198.51.100.1:8080", "POST", "/api/tasks/"+id+"/"+what, append(hs, "X-Forwarded-User", "ann@acme.test")...).Code
	}
	if got := act("cancel", "Origin", "https://elsewhere.test"); got != http.StatusForbidden {
		t.Errorf("from another site: %d", got)
	}
	if got := act("cancel"); got != http.StatusAccepted {
		t.Errorf("cancel: %d", got)
	}
	if s, err := h.Desk.Status(t.Context(), id); err != nil || s.Cancel != "ann@acme.test" {
		t.Errorf("cancelled by %q, %v", s.Cancel, err)
	}
	if got := act("retry"); got != http.StatusAccepted ||
		!strings.Contains(log.String(), "run="+id+" by=ann@acme.test") {
		t.Errorf("retry: %d, and the log says %q", got, log.String())
	}
}
