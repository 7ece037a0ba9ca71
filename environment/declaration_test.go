package environment

import (
	"errors"
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
		"wrong type":     {"checks: [make]\nenv: [A]\n", nil, []string{"at line 2"}},
		"not YAML":       {"env: {A", nil, []string{"not YAML"}},
		"many variables": {many, nil, []string{"V100 is one of"}},
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

func TestWithUnwanted(t *testing.T) {
	t.Parallel()
	const entry = `findings like "a - b" (tests)`
	full := "review: {unwanted: [" + strings.Repeat("x,", 50) + "]}"
	for _, c := range []struct{ text, want string }{
		{"", "review:\n  unwanted:\n    - findings like \"a - b\" (tests)\n"},
		{
			"# c\nreview: # y\n  severity: major\n",
			"# c\nreview: # y\n  severity: major\n  unwanted:\n    - findings like \"a - b\" (tests)\n",
		},
		{"review: {severity: major}\n", "review: {severity: major, unwanted: [findings like \"a - b\" (tests)]}\n"},
		{"review:\n  unwanted:\n    - x\n", "review:\n  unwanted:\n    - x\n    - findings like \"a - b\" (tests)\n"},
		{"review: {unwanted: ['" + entry + "']}\n", "review: {unwanted: ['" + entry + "']}\n"},
		{
			"# c\n\n# review:\n#   severity: major",
			"# c\n\n# review:\n#   severity: major\nreview:\n  unwanted:\n    - findings like \"a - b\" (tests)\n",
		},
		{"# c\n---\n# d\n", "# c\n---\n# d\nreview:\n  unwanted:\n    - findings like \"a - b\" (tests)\n"},
		{"null\n", "review:\n  unwanted:\n    - findings like \"a - b\" (tests)\n"},
		{
			"review: # y\nchecks: [x]\n",
			"review: # y\n  unwanted:\n    - findings like \"a - b\" (tests)\nchecks: [x]\n",
		},
		{
			"review:\n  severity: major\n  unwanted:\n",
			"review:\n  severity: major\n  unwanted:\n    - findings like \"a - b\" (tests)\n",
		},
		{
			"review: ~\n---\n# d\nb: 1\n",
			"review:\n  unwanted:\n    - findings like \"a - b\" (tests)\n---\n# d\nb: 1\n",
		},
		{"a: 1\n---\nb: [\n", ""},
		{full, ""},
		{"review: {unwanted: x}\n", ""},
		{"review: []\n", ""},
		{"- x\n", ""},
	} {
		got, err := WithUnwanted(c.text, entry)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q becomes %q, %v", c.text, got, err)
		}
		if errors.Is(err, ErrFull) != (c.text == full) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	has := strings.Replace(full, "x", "'"+entry+"'", 1)
	if got, err := WithUnwanted(has, entry); got != has || err != nil {
		t.Errorf("a full list with the entry becomes %q, %v", got, err)
	}
	// Whatever the entry is, it comes back as one entry and adds no setting.
	for _, entry := range []string{
		"true", "~", "# x", "a: b", "- x", "*a", "10", `'`, "findings like \"x, y\" (tests)",
	} {
		got, err := WithUnwanted("review: {unwanted: [x]}\n", entry)
		if again, err2 := WithUnwanted(got, entry); err != nil || err2 != nil || again != got {
			t.Errorf("%q becomes %q, %v, %v", entry, got, err, err2)
		}
	}
}

func TestWithHosts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "egress:\n  - a.example\n  - b.example\n",
		"# c\nsetup: [x] # y\n":        "# c\nsetup: [x] # y\negress:\n  - a.example\n  - b.example\n",
		"egress: [npm]\nsetup:\n- x\n": "egress: [npm, a.example, b.example]\nsetup:\n  - x\n",
		"# c\n":                        "# c\negress:\n  - a.example\n  - b.example\n",
		"egress: # c\n":                "egress: # c\n  - a.example\n  - b.example\n",
		"egress: none\n":               "",
		"egress: {allow: [x]}\n":       "",
		"- x\n":                        "",
		"a: [\n":                       "",
	} {
		got, err := WithHosts(text, []string{"a.example", "b.example"})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}
