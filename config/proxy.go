package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// Networks are addresses and networks, written 192.0.2.7 and 192.0.2.0/24, with commas between them.
type Networks []netip.Prefix

// UnmarshalText reads what String writes. A single address is the network of it alone.
func (n *Networks) UnmarshalText(text []byte) error {
	*n = nil
	for part := range strings.SplitSeq(string(text), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			addr, err := netip.ParseAddr(part)
			if err != nil {
				return fmt.Errorf("read network: %w", err)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		*n = append(*n, prefix.Masked())
	}
	return nil
}

func (n Networks) String() string {
	parts := make([]string, len(n))
	for i, p := range n {
		parts[i] = strings.TrimSuffix(p.String(), fmt.Sprintf("/%d", p.Addr().BitLen()))
	}
	return strings.Join(parts, ",")
}

// loopback are the addresses that an agent has as well as we.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// checkProxy refuses a proxy that is named by half, and one that an agent could pass for.
func (h HTTP) checkProxy(p *Problems) {
	const header, from = "ERRAND_TRUSTED_PROXY_HEADER", "ERRAND_TRUSTED_PROXIES"
	switch {
	case h.ProxyHeader != "" && !headerForm.MatchString(h.ProxyHeader):
		p.add(header, fmt.Sprintf("is %q, which is no name of a header", h.ProxyHeader), "write one like X-Forwarded-User")
	case h.ProxyHeader != "" && len(h.Proxies) == 0 && !p.has(from):
		p.add(from, "is not set although "+header+" is", "set it to the address from which the proxy connects, like 192.0.2.7")
	case h.ProxyHeader == "" && len(h.Proxies) > 0:
		p.add(header, "is not set although "+from+" is", "set it to the header in which the proxy says who has logged in, like X-Forwarded-User")
	}
	for _, network := range h.Proxies {
		for _, own := range loopback {
			if network.Overlaps(own) {
				p.add(from, fmt.Sprintf("holds %s, and with it %s, from which agents can connect as well", network, own),
					"write the proxy's own address; a proxy on the same machine can only be trusted in a network of its own, such as a container's")
			}
		}
	}
}
