package egress

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// An address of the machine itself is refused also where it is one of the Internet, as on many servers.
func TestOwnAddressIsNotPublic(t *testing.T) {
	t.Parallel()
	own := []net.Addr{
		&net.IPAddr{IP: net.IPv4(8, 8, 4, 4)}, // no network of an interface
		&net.IPNet{IP: net.IPv4(8, 8, 8, 8), Mask: net.CIDRMask(24, 32)},
		&net.IPNet{IP: net.ParseIP("2606:4700:4700::1111"), Mask: net.CIDRMask(64, 128)},
	}
	for ip, want := range map[string]bool{
		"8.8.8.8": false, "::ffff:8.8.8.8": false, "2606:4700:4700::1111": false, "8.8.8.9": true,
		"2606:4700:4700::1001": true,
	} {
		if got := publicBeside(own, netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s is public: %t", ip, got)
		}
	}
}

// openProxy returns a proxy to every host, on a machine whose own addresses are public or not.
func openProxy(t *testing.T, public bool) *Proxy {
	t.Helper()
	p := NewNetwork(Config{
		Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
		Public: func(netip.Addr) bool { return public },
	}).Open(func(string, ...any) {})
	t.Cleanup(p.Close)
	return p
}

// pass sends a plain request to an address that is listed.
func pass(ctx context.Context, p *Proxy, address string, h http.Header) *httptest.ResponseRecorder {
	w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	req.Header = h
	p.Begin(Rules{List: hostlist.List{Mode: hostlist.Listed, Hosts: []string{req.URL.Host}}})
	p.forward(w, req, p.rules.Load())
	return w
}

// A plain request cannot change its connection to another protocol, which nothing would check.
func TestPlainRequestsStayPlain(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { got <- req.Header }))
	defer server.Close()
	w := pass(t.Context(), openProxy(t, true), server.URL, http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "X-Other": {"x"},
	})
	if w.Code != http.StatusOK {
		t.Fatalf("status %d, %s", w.Code, w.Body)
	}
	h := <-got
	if h.Get("Upgrade") != "" || h.Get("Connection") != "" || h.Get("X-Other") != "x" {
		t.Errorf("passed %v", h)
	}
}

// A plain request to a host with private addresses is refused as such, and is in the report.
func TestPlainRequestToAPrivateAddress(t *testing.T) {
	t.Parallel()
	p := openProxy(t, false)
	w := pass(t.Context(), p, "http://127.0.0.1:9/", http.Header{})
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), notPublic) {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
	if len(p.report.Refused) != 1 || p.report.Refused[0].Why != notPublic {
		t.Errorf("reported %v", p.report.Refused)
	}
}

// A report has a bounded number of hosts, each once.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	p := openProxy(t, true)
	for n := range 2 * maxHosts {
		host := fmt.Sprintf("host%d.example", n)
		for range 2 {
			p.refused(host, notListed)
			p.reached(target{host, "443"})
		}
	}
	if len(p.report.Refused) != maxHosts || len(p.report.Reached) != maxHosts || p.report.Refusals != 4*maxHosts {
		t.Errorf("%d of %d refusals, %d reached", len(p.report.Refused), p.report.Refusals, len(p.report.Reached))
	}
}
