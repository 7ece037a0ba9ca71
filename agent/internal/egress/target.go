package egress

import (
	"net"
	"strings"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// target is what a request wants to reach.
type target struct{ host, port string }

func (t target) address() string { return net.JoinHostPort(t.host, t.port) }

// String returns the target as an entry of a list.
func (t target) String() string {
	if (t.port == "443" || t.port == "80") && !strings.Contains(t.host, ":") {
		return t.host
	}
	return t.address()
}

// parseTarget reads the target of CONNECT.
func parseTarget(uri string) (target, bool) {
	host, port, err := net.SplitHostPort(uri)
	if err != nil {
		return target{}, false
	}
	name, ok := hostlist.Normalize(host)
	return target{name, port}, ok && port != ""
}
