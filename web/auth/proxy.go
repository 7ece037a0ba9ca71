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
	Groups string         // the header with the person's groups, separated by commas; empty: none
	From   []netip.Prefix // the addresses of the proxy; the headers are ignored from elsewhere
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

// identity returns the person whom the proxy names, and whether it names one.
func (p Proxy) identity(r *http.Request) (id Identity, ok bool) {
	id.Name = p.person(r)
	if strings.Contains(id.Name, "@") {
		id.Email = id.Name
	}
	if lists := r.Header.Values(p.Groups); p.Groups != "" && len(lists) == 1 {
		for group := range strings.SplitSeq(lists[0], ",") {
			id.Groups = append(id.Groups, strings.TrimSpace(group))
		}
	}
	return id, id.Name != ""
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
	return slices.ContainsFunc(p.From, func(n netip.Prefix) bool { return n.Contains(from) }) && !ofThisMachine(from)
}

// ofThisMachine reports whether an address is one of this machine's, or whether that is unknown. A local user can
// connect from any of them.
func ofThisMachine(from netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(all, func(a net.Addr) bool {
		network, err := netip.ParsePrefix(a.String())
		return err == nil && network.Addr().Unmap().WithZone("") == from
	})
}

// address returns the IP address that a request comes from, as far as the proxy states it.
func (p Proxy) address(r *http.Request) string {
	if list := r.Header.Values("X-Forwarded-For"); len(list) > 0 && p.sent(r) {
		hops := strings.Split(list[len(list)-1], ",")
		if addr, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1])); err == nil {
			return addr.String()
		}
	}
	addr, err := address(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return addr.String()
}

// address returns the IP address of a host:port, without zone and not mapped to IPv6.
func address(hostPort string) (netip.Addr, error) {
	ap, err := netip.ParseAddrPort(hostPort)
	return ap.Addr().Unmap().WithZone(""), err
}
