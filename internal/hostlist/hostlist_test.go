package hostlist_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/internal/hostlist"
)

func TestRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		list  hostlist.List
		wrong string // part of the only problem; empty: none
	}{
		"any":   {hostlist.List{Mode: hostlist.Any}, ""},
		"none":  {hostlist.List{Mode: hostlist.None}, ""},
		"learn": {hostlist.List{Mode: hostlist.Learn}, ""},
		"[]":    {hostlist.List{Mode: hostlist.Listed, Hosts: []string{}}, ""},
		"[go, '*.example.com', h.example:8443, 192.0.2.1, '[2001:db8::1]:443']": {
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{
				"go", "*.example.com", "h.example:8443", "192.0.2.1", "[2001:db8::1]:443",
			}}, "",
		},
		"{allow: any, private: [git.corp]}": {hostlist.List{Mode: hostlist.Any, Private: []string{"git.corp"}}, ""},
		"{private: [git.corp]}":             {hostlist.List{Mode: hostlist.Listed, Private: []string{"git.corp"}}, ""},
		"{private: [git, 'registry:5000']}": {
			hostlist.List{Mode: hostlist.Listed, Private: []string{"git", "registry:5000"}}, "",
		},
		"{alow: any}":    {hostlist.List{Mode: "alow:"}, `"alow:"`},
		"{private: any}": {hostlist.List{Mode: "private: any"}, `"private: any"`},
		"all":            {hostlist.List{Mode: "all"}, `"all" is not`},
		"['*.com']": {
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{"*.com"}}, "top-level",
		},
		"['*']":   {hostlist.List{Mode: hostlist.Listed, Hosts: []string{"*"}}, "is not a host"},
		"['a b']": {hostlist.List{Mode: hostlist.Listed, Hosts: []string{"a b"}}, "is not a host"},
		"['https://x.example']": {
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{"https://x.example"}}, "has no valid port",
		},
		"['x.example:0']":  {hostlist.List{Mode: hostlist.Listed, Hosts: []string{"x.example:0"}}, "has no valid port"},
		"['x.example:']":   {hostlist.List{Mode: hostlist.Listed, Hosts: []string{"x.example:"}}, "has no valid port"},
		"['127.1']":        {hostlist.List{Mode: hostlist.Listed, Hosts: []string{"127.1"}}, "is not a host"},
		"{private: [go.]}": {hostlist.List{Mode: hostlist.Listed, Private: []string{"go."}}, "is not a host"},
	} {
		var got struct{ Egress hostlist.List }
		if err := yaml.Unmarshal([]byte("egress: "+text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want.list, got.Egress); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		problems := got.Egress.Problems()
		if want.wrong == "" && len(problems) > 0 ||
			want.wrong != "" && (len(problems) != 1 || !strings.Contains(problems[0], want.wrong)) {
			t.Errorf("%s: %q", text, problems)
		}
		if valid := got.Egress.Valid(); len(valid.Problems()) > 0 {
			t.Errorf("%s: the valid part is %+v", text, valid)
		}
	}
	var got struct{ Egress hostlist.List }
	if err := yaml.Unmarshal([]byte("egress: {allow: {x: y}}"), &got); err == nil ||
		!strings.Contains(err.Error(), "line 1") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	listed := func(hosts ...string) hostlist.List { return hostlist.List{Mode: hostlist.Listed, Hosts: hosts} }
	for _, c := range []struct {
		list        hostlist.List
		host, port  string
		tunnel      bool
		ok, private bool
	}{
		{listed("x.example"), "x.example", "443", true, true, false},
		{listed("x.example"), "x.example", "443", false, false, false},
		{listed("x.example"), "x.example", "80", false, true, false},
		{listed("x.example"), "x.example", "80", true, false, false},
		{listed("x.example"), "a.x.example", "443", true, false, false},
		{listed("X.Example"), "x.example", "443", true, true, false},
		{listed("*.x.example"), "a.b.x.example", "443", true, true, false},
		{listed("*.x.example"), "x.example", "443", true, false, false},
		{listed("*.x.example"), "ax.example", "443", true, false, false},
		{listed("x.example:22"), "x.example", "22", true, true, false},
		{listed("x.example:22"), "x.example", "443", true, false, false},
		{listed("python"), "pypi.org", "443", true, true, false},
		{listed("python"), "python", "443", true, false, false},
		{listed("9.9.9.9"), "9.9.9.9", "443", true, true, false},
		{listed("[2001:db8::1]:8443"), "2001:db8::1", "8443", true, true, false},
		{hostlist.List{Mode: hostlist.Any}, "x.example", "443", true, true, false},
		{hostlist.List{Mode: hostlist.Any}, "x.example", "22", true, false, false},
		{hostlist.List{Mode: hostlist.Any}, "9.9.9.9", "443", true, false, false},
		{hostlist.List{Mode: hostlist.Any}, "intranet", "443", true, false, false},
		{hostlist.List{Mode: hostlist.None}, "x.example", "443", true, false, false},
		{hostlist.List{}, "x.example", "443", true, false, false},
		{hostlist.List{Private: []string{"git.corp"}}, "git.corp", "443", true, true, true},
		{hostlist.List{Mode: hostlist.Any, Private: []string{"10.0.0.1:8443"}}, "10.0.0.1", "8443", true, true, true},
		{hostlist.List{Mode: hostlist.Any, Private: []string{"10.0.0.1:8443"}}, "10.0.0.1", "443", true, false, false},
		{hostlist.List{Private: []string{"go"}}, "go.dev", "443", true, false, false},
	} {
		if ok, private := c.list.Allows(c.host, c.port, c.tunnel); ok != c.ok || private != c.private {
			t.Errorf("%+v allows %s:%s (tunnel %t): %t, private %t", c.list, c.host, c.port, c.tunnel, ok, private)
		}
	}
}

// What two lists allow together, each of them allows.
func TestAnd(t *testing.T) {
	t.Parallel()
	listed := func(hosts ...string) hostlist.List { return hostlist.List{Mode: hostlist.Listed, Hosts: hosts} }
	any, learn, none := hostlist.List{Mode: hostlist.Any}, hostlist.List{Mode: hostlist.Learn},
		hostlist.List{Mode: hostlist.None}
	for _, c := range []struct{ a, b, want hostlist.List }{
		{listed("x.example", "y.example"), listed("Y.example", "z.example"), listed("Y.example", "y.example")},
		{listed("x.example", "y.example"), listed("y.example", "z.example"), listed("y.example")},
		{listed("*.x.example"), listed("a.x.example", "x.example", "ax.example"), listed("a.x.example")},
		{listed("*.x.example"), listed("*.a.x.example", "*.example"), listed("*.x.example", "*.a.x.example")},
		{
			listed("*.x.example:8443", "y.example:22"), listed("a.x.example", "a.x.example:8443", "y.example"),
			listed("a.x.example:8443"),
		},
		{listed("ruby"), listed("rubygems.org"), listed("rubygems.org")},
		{listed("x.example"), any, listed("x.example")},
		{learn, listed("x.example", "x.example:22", "9.9.9.9", "intranet"), listed("x.example")},
		{any, learn, any},
		{learn, learn, learn},
		{any, none, none},
		{none, listed("x.example"), none},
		{hostlist.List{}, any, none},
		{hostlist.List{}, hostlist.List{}, hostlist.List{}},
		{
			hostlist.List{Mode: hostlist.Any, Private: []string{"a.corp", "b.corp"}},
			hostlist.List{Mode: hostlist.None, Private: []string{"b.corp", "c.corp"}},
			hostlist.List{Mode: hostlist.None, Private: []string{"b.corp"}},
		},
	} {
		for _, got := range []hostlist.List{c.a.And(c.b), c.b.And(c.a)} {
			slices.Sort(got.Hosts)
			slices.Sort(c.want.Hosts)
			if got.Mode != c.want.Mode || !slices.Equal(got.Hosts, c.want.Hosts) ||
				!slices.Equal(got.Private, c.want.Private) {
				t.Errorf("%+v and %+v: %+v", c.a, c.b, got)
			}
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"X.Example.": "x.example", "xn--bcher-kva.example": "xn--bcher-kva.example", "localhost": "localhost",
		"9.9.9.9": "9.9.9.9", "2001:DB8::0": "2001:db8::", "": "", ".": "", "x..example": "", "127.1": "",
		"0x7f.0.0.1": "", "2130706433": "", "a@b.example": "", "a b": "", "-a.example": "", "fe80::1%eth0": "",
		"b\u00fccher.example": "", strings.Repeat("a.", 127) + "example": "",
	} {
		if got, ok := hostlist.Normalize(host); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %t", host, got, ok)
		}
	}
}

// The presets are names that are valid by themselves, and documented.
func TestPresets(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/environment.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hostlist.Presets() {
		hosts := hostlist.PresetHosts(name)
		if problems := (hostlist.List{Mode: hostlist.Listed, Hosts: hosts}).Problems(); len(problems) > 0 {
			t.Error(problems)
		}
		if row := fmt.Sprintf("| `%s` | %s |\n", name, strings.Join(hosts, ", ")); !strings.Contains(string(doc), row) {
			t.Errorf("docs/environment.md lacks the row %s", row)
		}
	}
	if problems := hostlist.Default().Problems(); len(problems) > 0 {
		t.Error(problems)
	}
}

// A list has at most 200 entries, of both kinds together.
func TestMostEntries(t *testing.T) {
	t.Parallel()
	entries := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("h%d.example.com", i))
		}
		return list
	}
	for _, c := range []struct {
		hosts, private int
		problems       int
	}{{200, 0, 0}, {0, 200, 0}, {199, 1, 0}, {201, 0, 1}, {200, 1, 1}} {
		l := hostlist.List{Mode: hostlist.Listed, Hosts: entries(c.hosts), Private: entries(c.private)}
		if wrong := l.Problems(); len(wrong) != c.problems {
			t.Errorf("%d hosts and %d private ones: %q", c.hosts, c.private, wrong)
		}
	}
}
