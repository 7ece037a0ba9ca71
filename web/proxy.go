package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// Proxy is a reverse proxy that has people log in and says in a header who they are. The zero value is none.
type Proxy struct {
	Header string         // holds the person's name; the proxy must take away what a visitor puts there
	From   []netip.Prefix // the proxy's addresses: from elsewhere the header is nobody's word
}

// maxName bounds a person's name, in bytes: it is stored with what they do.
const maxName = 100

// person is who the proxy says asks; empty when no proxy we trust says it, or not clearly.
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

// sent reports whether a request comes from the proxy. One from this machine never does, whatever its addresses are: an agent is a
// local user, and can say what it likes in a header.
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

// address is the bare address of a connection's end.
func address(hostPort string) (netip.Addr, error) {
	ap, err := netip.ParseAddrPort(hostPort)
	return ap.Addr().Unmap().WithZone(""), err
}
