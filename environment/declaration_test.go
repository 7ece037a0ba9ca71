package environment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/hostlist"
)

func TestParse(t *testing.T) {
	t.Parallel()
	many := "env:\n"
	for i := range maxVariables + 1 {
		many += fmt.Sprintf("  V%03d: x\n", i)
	}
	for name, c := range map[string]struct {
		file  string
		want  map[string]string
		wrong []string // parts of the sentences, in order
	}{
		"nothing":        {"", nil, nil},
		"other settings": {"checks: [make]\nenv: {GOFLAGS: -mod=mod}\n", map[string]string{"GOFLAGS": "-mod=mod"}, nil},
		"numbers":        {"env: {PORT: 8080, DEBUG: true}\n", map[string]string{"PORT": "8080", "DEBUG": "true"}, nil},
		"wrong names": {
			"env: {A B: x, PATH: /evil, anthropic_base_url: x, LD_PRELOAD: x, https_proxy: x, CLAUDE_CODE_X: x, OK: x}\n",
			map[string]string{"OK": "x"},
			[]string{`"A B"`, "CLAUDE_CODE_X", "LD_PRELOAD", "PATH", "anthropic_base_url", "https_proxy"},
		},
		"wrong value": {
			"env: {A: \"a\\0b\", B: " + strings.Repeat("x", maxValue+1) + "}\n",
			map[string]string{},
			[]string{"of A", "of B"},
		},
		"wrong models": {
			"model: --help\neffort: high\nmodels: {mention: opus, fix: -x, cook: opus}\nenv: {A: b}\n",
			map[string]string{"A": "b"},
			[]string{`model: "--help"`, `models: "cook" is not a kind`, `models: fix: "-x"`},
		},
		"a directory outside": {
			"directory: ../other\nenv: {A: b}\n", map[string]string{"A": "b"}, []string{`directory: "../other" is not`},
		},
		"two directories": {"path: \"bin\\nlib\"\nenv: {A: b}\n", map[string]string{"A": "b"}, []string{"path: "}},
		"one text":        {"setup: npm ci\npath: bin\nenv: {A: b}\n", map[string]string{"A": "b"}, nil},
		"wrong type":      {"checks: [make]\nenv: [A]\n", nil, []string{"Line 2: the value has the wrong type."}},
		"not YAML":        {"env: {A", nil, []string{"not YAML"}},
		"many variables":  {many, nil, []string{"V100 is one of"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, wrong := Parse([]byte(c.file))
			if name != "many variables" {
				if diff := cmp.Diff(c.want, d.Env); diff != "" {
					t.Error(diff)
				}
			} else if len(d.Env) != maxVariables {
				t.Errorf("%d variables", len(d.Env))
			}
			if len(wrong) != len(c.wrong) {
				t.Fatalf("complains %q", wrong)
			}
			for i, part := range c.wrong {
				if !strings.Contains(wrong[i], part) {
					t.Errorf("%q does not mention %q", wrong[i], part)
				}
			}
		})
	}
}

func TestUnder(t *testing.T) {
	t.Parallel()
	own := Declaration{Env: map[string]string{"A": "repository", "B": "repository"}}
	got := own.Under(Declaration{Env: map[string]string{"B": "operator", "C": "operator"}})
	if diff := cmp.Diff(map[string]string{"A": "repository", "B": "operator", "C": "operator"}, got.Env); diff != "" {
		t.Error(diff)
	}
	if own.Env["B"] != "repository" {
		t.Error("the declaration has changed")
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	fleet := hostlist.List{Mode: hostlist.Listed, Hosts: []string{"go"}, Private: []string{"git.corp"}}
	for name, c := range map[string]struct {
		file            string // the repository's
		operator, fleet hostlist.List
		want            hostlist.List
		wrong           string
	}{
		"the fleet's": {"", hostlist.List{}, fleet, fleet, ""},
		"adds": {
			"egress: [x.example]",
			hostlist.List{},
			fleet,
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{"go", "x.example"}, Private: []string{"git.corp"}},
			"",
		},
		"adds to none": {
			"egress: [x.example]",
			hostlist.List{},
			hostlist.List{Mode: hostlist.None},
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{"x.example"}},
			"",
		},
		"adds to any": {
			"egress: [x.example]",
			hostlist.List{},
			hostlist.List{Mode: hostlist.Any},
			hostlist.List{Mode: hostlist.Any},
			"",
		},
		"wants none":       {"egress: none", hostlist.List{}, fleet, hostlist.List{Mode: hostlist.None}, ""},
		"wants everything": {"egress: any", hostlist.List{}, fleet, fleet, `only the operator can set "any"`},
		"wants to learn":   {"egress: learn", hostlist.List{}, fleet, fleet, `only the operator can set "learn"`},
		"wants private": {
			"egress: {allow: [x.example], private: [db.corp]}",
			hostlist.List{},
			hostlist.List{},
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{"x.example"}},
			"private hosts",
		},
		"partly invalid": {
			"egress: [x.example, 'a b']",
			hostlist.List{},
			hostlist.List{},
			hostlist.List{Mode: hostlist.Listed, Hosts: []string{"x.example"}},
			`"a b" is not`,
		},
		"the operator's": {
			"egress: [x.example]", hostlist.List{Mode: hostlist.Learn}, fleet, hostlist.List{Mode: hostlist.Learn}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, wrong := Parse([]byte(c.file))
			if said := strings.Join(wrong, " "); c.wrong == "" && said != "" || !strings.Contains(said, c.wrong) {
				t.Errorf("complains %q", wrong)
			}
			if diff := cmp.Diff(c.want, d.Reach(c.operator, c.fleet)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckDirectory(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		".": true, "api": true, "services/api/": true, "a b/ü": true, "..a/b..": true, "": false, "/etc": false,
		"..": false, "a/../b": false, "a/../../b": false, ".git": false, "a/.GIT/hooks": false, "a\nb": false,
		"a\xff": false, strings.Repeat("a", maxValue+1): false,
	} {
		if why := CheckDirectory(name); (why == "") != good {
			t.Errorf("%.50q: %q", name, why)
		}
	}
}
