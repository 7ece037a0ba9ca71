package auth

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// Proxy is a reverse proxy that authenticates people and names them in a header. The zero value is no proxy.
type Proxy struct {
	Header string         // holds the name; the proxy must remove this header from what visitors send
	From   []netip.Prefix // the addresses of the proxy; the header is ignored from elsewhere
}

// maxName bounds a name, in bytes: it is stored with what the person does.
const maxName = 100

// person returns the name that the proxy states. It returns "" unless a trusted proxy states exactly one printable
// name.
func (p Proxy) person(r *http.Request) string {
	names := r.Header.Values(p.Header)
	if p.Header == "" || len(names) != 1 || !p.sent(r) {
		return ""
	}
	name := strings.TrimSpace(names[0])
	if len(name) > maxName || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return ""
	}
	return name
}

// sent reports whether a request comes from the proxy. A request from this machine never does, whatever its address: an
// agent is a local user and can put anything in a header.
func (p Proxy) sent(r *http.Request) bool {
	from, err := address(r.RemoteAddr)
	if err != nil || from.IsLoopback() {
		return false
	}
	if here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if to, err := address(here.String()); err != nil || to == from {
			return false
		}
	}
	return slices.ContainsFunc(p.From, func(n netip.Prefix) bool { return n.Contains(from) })
}

// address returns the IP address of a host:port, without zone and not mapped to IPv6.
func address(hostPort string) (netip.Addr, error) {
	ap, err := netip.ParseAddrPort(hostPort)
	return ap.Addr().Unmap().WithZone(""), err
}
