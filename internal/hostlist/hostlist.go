// Package hostlist describes which hosts a run may reach: the value of `egress` in errand.yaml and .github/errand.yml.
//
// A [List] is read from YAML and checked with [List.Problems]. It decides by name and port only; whoever connects
// checks the addresses. The package keeps no state, so everything in it may be used from any goroutine.
package hostlist

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Mode is how a List decides.
type Mode string

// The modes. The zero value is that of a List that was not declared.
const (
	Listed Mode = "list"  // the hosts of the list
	None   Mode = "none"  // no host
	Any    Mode = "any"   // every public host
	Learn  Mode = "learn" // as Any, and the hosts are reported as a list
)

// List says which hosts may be reached. The zero value declares nothing and allows no host.
type List struct {
	Mode    Mode
	Hosts   []string // of Listed: hosts, *.domain, host:port, and names of presets
	Private []string // hosts that are allowed and may have private addresses, in any mode
}

// The ports of entries without a port, and of hosts in the modes Any and Learn.
const (
	portTLS  = "443" // of a tunnel (CONNECT)
	portHTTP = "80"  // of a plain request
)

// maxEntries bounds a list.
const maxEntries = 200

// presets are the hosts of the package registries of a language, and of GitHub. docs/environment.md lists the same.
var presets = map[string][]string{
	"debian": {"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com"},
	"dotnet": {"api.nuget.org", "www.nuget.org", "builds.dotnet.microsoft.com"},
	"github": {
		"github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com",
		"objects.githubusercontent.com", "release-assets.githubusercontent.com",
	},
	"go": {"proxy.golang.org", "sum.golang.org", "go.dev", "golang.org", "dl.google.com"},
	"java": {
		"repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "plugins-artifacts.gradle.org",
		"services.gradle.org", "downloads.gradle.org", "maven.google.com", "dl.google.com",
	},
	"npm":    {"registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com", "nodejs.org"},
	"python": {"pypi.org", "files.pythonhosted.org"},
	"ruby":   {"rubygems.org", "index.rubygems.org"},
	"rust":   {"crates.io", "index.crates.io", "static.crates.io", "static.rust-lang.org"},
}

// Presets returns the names of all presets.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// Default is the list of a fleet that declares none: all presets.
func Default() List { return List{Mode: Listed, Hosts: Presets()} }

// Declared reports whether l was declared.
func (l List) Declared() bool { return l.Mode != "" }

// Plus returns l with further hosts. The modes Any and Learn allow them already.
func (l List) Plus(hosts []string) List {
	if l.Mode == Any || l.Mode == Learn || len(hosts) == 0 {
		return l
	}
	return List{Mode: Listed, Hosts: slices.Concat(l.Hosts, hosts), Private: l.Private}
}

// And returns a list that allows what both lists allow. It may allow less: an entry of one list stays if an entry of
// the other covers it.
func (l List) And(other List) List {
	open := func(l List) bool { return l.Mode == Any || l.Mode == Learn }
	both := List{Mode: Listed, Private: common(l.Private, other.Private)}
	switch {
	case l.Mode == other.Mode && l.Mode != Listed:
		both.Mode = l.Mode
	case open(l) && open(other):
		both.Mode = Any
	case open(l):
		both.Hosts = common(other.Hosts, []string{"*"})
	case open(other):
		both.Hosts = common(l.Hosts, []string{"*"})
	default: // other modes have no hosts
		both.Hosts = common(l.Hosts, other.Hosts)
	}
	if both.Mode == Listed && len(both.Hosts) == 0 {
		both.Mode = None
	}
	return both
}

// common returns the entries of either list that one of the other list covers. An entry * covers what the modes Any and
// Learn allow.
func common(a, b []string) (both []string) {
	var all [2][]string
	for i, entries := range [][]string{a, b} {
		for _, entry := range entries {
			all[i] = append(all[i], expand(entry)...)
		}
	}
	for i, entries := range all {
		for _, entry := range entries {
			covered := slices.ContainsFunc(all[1-i], func(by string) bool {
				return covers(strings.ToLower(by), strings.ToLower(entry))
			})
			if covered && !slices.Contains(both, entry) {
				both = append(both, entry)
			}
		}
	}
	return both
}

// covers reports whether an entry allows all that another one does.
func covers(by, entry string) bool {
	host, port := splitEntry(entry)
	if by == "*" {
		_, err := netip.ParseAddr(host)
		return err != nil && port == "" && strings.Contains(host, ".")
	}
	wide, at := splitEntry(by)
	domain, wild := strings.CutPrefix(wide, "*")
	return by == entry || wild && at == port && strings.HasSuffix(host, domain)
}

// UnmarshalYAML reads a word, a list of hosts, or both parts as `allow` and `private`.
func (l *List) UnmarshalYAML(unmarshal func(any) error) error {
	var parts map[string]allowed
	var only allowed
	if unmarshal(&parts) != nil {
		if err := unmarshal(&only); err != nil {
			return err
		}
		*l = List{Mode: only.mode, Hosts: only.hosts}
		return nil
	}
	allow, private := parts["allow"], parts["private"]
	*l = List{Mode: cmp.Or(allow.mode, Listed), Hosts: allow.hosts, Private: private.hosts}
	if private.mode != "" && private.mode != Listed {
		l.Mode = "private: " + private.mode // see Problems
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		if key != "allow" && key != "private" {
			l.Mode = Mode(key + ":")
		}
	}
	return nil
}

// allowed is a word or a list of hosts.
type allowed struct {
	mode  Mode
	hosts []string
}

func (a *allowed) UnmarshalYAML(unmarshal func(any) error) error {
	var word string
	if unmarshal(&word) == nil {
		a.mode = Mode(word)
		return nil
	}
	a.mode = Listed
	return unmarshal(&a.hosts)
}

// hostName matches a name without a trailing dot, in lower case. Its last label is not a number, so that no resolver
// reads it as an address.
var hostName = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*([a-z]|[a-z][a-z0-9_-]{0,61}[a-z0-9_])$`)

// Problems returns a sentence about each invalid part of l.
func (l List) Problems() (wrong []string) {
	if !slices.Contains([]Mode{"", Listed, None, Any, Learn}, l.Mode) {
		wrong = append(wrong,
			fmt.Sprintf("%.50q is not a list of hosts, any, none or learn, or such a value for "+
				"allow and a list for private.", l.Mode))
	}
	if len(l.Hosts)+len(l.Private) > maxEntries {
		wrong = append(wrong, fmt.Sprintf("It has more than %d entries.", maxEntries))
	}
	for i, entry := range slices.Concat(l.Hosts, l.Private) {
		if problem := check(entry); problem != "" && (i >= len(l.Hosts) || presets[entry] == nil) {
			wrong = append(wrong, fmt.Sprintf("%.100q %s.", entry, problem))
		}
	}
	return wrong
}

// Valid returns l without its invalid parts.
func (l List) Valid() List {
	if !slices.Contains([]Mode{Listed, None, Any, Learn}, l.Mode) {
		return List{}
	}
	keep := func(entries []string, named bool) (kept []string) {
		for _, entry := range entries[:min(len(entries), maxEntries)] {
			if check(entry) == "" || named && presets[entry] != nil {
				kept = append(kept, entry)
			}
		}
		return kept
	}
	return List{Mode: l.Mode, Hosts: keep(l.Hosts, true), Private: keep(l.Private, false)}
}

// check returns what is wrong with an entry that is not the name of a preset, or "".
func check(entry string) string {
	host, port := splitEntry(entry)
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535 || strconv.Itoa(n) != port) {
		return "has no valid port"
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	domain, wild := strings.CutPrefix(strings.ToLower(host), "*.")
	switch {
	case !hostName.MatchString(domain) || len(domain) > 253:
		return "is not a host, *.domain, host:port or the name of a preset (" + strings.Join(Presets(), ", ") + ")"
	case wild && !strings.Contains(domain, "."):
		return "matches a whole top-level domain"
	}
	return ""
}

// splitEntry splits an entry at its port, if any. An IPv6 address with a port is in brackets.
func splitEntry(entry string) (host, port string) {
	if _, err := netip.ParseAddr(entry); err == nil {
		return entry, ""
	}
	if at := strings.LastIndexByte(entry, ':'); at >= 0 {
		entry, port = entry[:at], entry[at+1:]
		if port == "" {
			port = "-" // invalid
		}
	}
	if inner, ok := strings.CutPrefix(entry, "["); ok && strings.HasSuffix(inner, "]") {
		entry = strings.TrimSuffix(inner, "]")
	}
	return entry, port
}

// Normalize returns a host as lists have it: a name in lower case without the dot at its end, or an address. ok is
// false for anything else, such as an address in another notation.
func Normalize(host string) (name string, ok bool) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.String(), ip.Zone() == ""
	}
	name = strings.TrimSuffix(strings.ToLower(host), ".")
	return name, len(name) <= 253 && hostName.MatchString(name)
}

// Allows reports whether a normalized host may be reached at a port, by a tunnel or by a plain request, and whether it
// may have a private address.
func (l List) Allows(host, port string, tunnel bool) (ok, private bool) {
	normal := portHTTP
	if tunnel {
		normal = portTLS
	}
	for _, entry := range l.Private {
		if matches(entry, host, port, normal) {
			return true, true
		}
	}
	switch l.Mode {
	case Any, Learn:
		_, err := netip.ParseAddr(host)
		return err != nil && port == normal && strings.Contains(host, "."), false
	case Listed:
		for _, entry := range l.Hosts {
			for _, one := range expand(entry) {
				if matches(one, host, port, normal) {
					return true, false
				}
			}
		}
	}
	return false, false
}

// expand returns the entries of a preset, or the entry itself.
func expand(entry string) []string {
	if hosts := presets[entry]; hosts != nil {
		return hosts
	}
	return []string{entry}
}

// matches reports whether an entry is about a host and port. normal is the port of an entry without one.
func matches(entry, host, port, normal string) bool {
	want, at := splitEntry(entry)
	if at == "" {
		at = normal
	}
	if at != port {
		return false
	}
	if ip, err := netip.ParseAddr(want); err == nil {
		return ip.String() == host
	}
	want = strings.ToLower(want)
	if domain, wild := strings.CutPrefix(want, "*."); wild {
		return strings.HasSuffix(host, "."+domain)
	}
	return want == host
}
