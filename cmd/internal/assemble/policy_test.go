package assemble

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/hostlist"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

func TestRulesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Config{Paths: config.Paths{File: "/etc/errand.yaml"}}
	c.Routing.Rules = []config.Rule{
		{Tool: "Bash", Input: "*git push*", Action: config.ActionDeny, Reason: "No."},
		{Tool: "*", Action: config.ActionAsk},
		{Tool: "read", Action: config.ActionAllow},
	}
	p, err := policyOf(c, nil)
	want := []agent.Rule{
		{Tool: "Bash", Input: "*git push*", Action: agent.Deny, Reason: "No."},
		{Tool: "*", Action: agent.Ask},
		{Tool: "read", Action: agent.Allow},
	}
	if diff := cmp.Diff(want, p.Rules); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	c.Routing.Rules = append(c.Routing.Rules, config.Rule{Tool: "bsh", Action: config.ActionDeny})
	const problem = `/etc/errand.yaml: rules.4 cannot work: unknown tool "bsh"`
	if _, err := New(c, nil, Options{}); err == nil || !strings.Contains(err.Error(), problem) {
		t.Errorf("start-up says %v, want %s", err, problem)
	}
}

func TestEnvironmentsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Config{Paths: config.Paths{File: "/etc/errand.yaml"}}
	c.Routing.Repositories = map[string]config.Repository{"acme/api": {Declaration: environment.Declaration{Env: map[string]string{"CI": "1"}}}}
	p, err := policyOf(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if repo, _ := p.Repository("acme/api"); repo.Environment.Env["CI"] != "1" {
		t.Errorf("repository = %+v", repo)
	}
	c.Routing.Repositories["acme/api"].Env["HOME"] = "/root"
	const problem = "/etc/errand.yaml: repositories.acme/api env: HOME is set by errand; correct it"
	if _, err := New(c, nil, Options{}); err == nil || !strings.Contains(err.Error(), problem) {
		t.Errorf("start-up says %v, want %s", err, problem)
	}
}

func TestPoolsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Config{}
	for name, want := range map[string][]string{"": {"default"}, "gpu": {"default", "gpu"}, "default": {"default"}} {
		if name != "" {
			c.Routing.Repositories = map[string]config.Repository{
				"acme/api": {Pool: name}, "acme/web": {}, "acme/ml": {Pool: name},
			}
		}
		p, err := policyOf(c, nil)
		if diff := cmp.Diff(want, p.Pools); diff != "" || err != nil {
			t.Errorf("pools of %q: %v\n%s", name, err, diff)
		}
		if repo, _ := p.Repository("ACME/api"); repo.Pool != tasks.ParsePool(name) {
			t.Errorf("repository in %q: %+v", name, repo)
		}
	}
}

// A fleet without a list has the presets, and a list of the fleet or of a repository replaces them.
func TestEgressOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Config{}
	p, err := policyOf(c, nil)
	if !cmp.Equal(p.Egress, hostlist.Default()) || err != nil {
		t.Errorf("the default is %+v, %v", p.Egress, err)
	}
	c.Routing.Egress = agent.Egress{Mode: hostlist.None}
	c.Routing.Repositories = map[string]config.Repository{"acme/api": {Declaration: environment.Declaration{Egress: agent.Egress{Mode: hostlist.Any}}}}
	p, err = policyOf(c, nil)
	if repo, _ := p.Repository("acme/api"); p.Egress.Mode != hostlist.None ||
		repo.Environment.Egress.Mode != hostlist.Any || err != nil {
		t.Errorf("%+v, %+v, %v", p.Egress, repo.Environment, err)
	}
	c.Routing.Repositories["acme/api"] = config.Repository{Declaration: environment.Declaration{Egress: agent.Egress{Mode: hostlist.Listed, Hosts: []string{"a b"}}}}
	if _, err := policyOf(c, nil); err == nil ||
		!strings.Contains(err.Error(), `repositories.acme/api egress: "a b" is not a host`) {
		t.Errorf("an invalid list: %v", err)
	}
}

func TestLimitsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Config{}
	c.Routing.Options = config.Options{Models: []string{"opus"}, Efforts: []string{"low"}}
	c.Routing.Limits = config.Limits{Repository: 1, User: 2}
	c.Routing.Budgets = config.Budgets{Task: 1, User: 2, Channel: 3, Repository: 4, Day: 5, Contact: "ann"}
	p, err := policyOf(c, nil)
	want := rights.Policy{
		Choices: rights.Choices{Models: []string{"opus"}, Efforts: []string{"low"}},
		Limits:  rights.Limits{Repository: 1, User: 2},
		Budgets: rights.Budgets{Task: 1, User: 2, Channel: 3, Repository: 4, Day: 5, Contact: "ann"},
	}
	if !cmp.Equal(p.Choices, want.Choices) || p.Limits != want.Limits || p.Budgets != want.Budgets || err != nil {
		t.Errorf("policy = %+v, %v", p, err)
	}
}

// What runs are told, and by which model they run, is taken from errand.yaml.
func TestGuidanceOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Config{Model: config.Model{Name: "opus"}}
	c.Routing.Instructions = "fleet"
	c.Routing.Channels = map[string]config.Channel{"C1": {Model: "haiku", Effort: "low", Instructions: "channel"}}
	c.Routing.Repositories = map[string]config.Repository{"acme/api": {
		Instructions: "repository",
		Declaration:  environment.Declaration{RunChoice: environment.RunChoice{Model: "fable"}},
	}}
	p, err := policyOf(c, nil)
	repo, _ := p.Repository("acme/api")
	if err != nil || p.Fleet != (policy.Wish{Model: "opus", Instructions: "fleet"}) ||
		p.Channels["C1"] != (policy.Wish{Model: "haiku", Effort: "low", Instructions: "channel"}) ||
		repo.Instructions != "repository" || repo.Environment.Model != "fable" {
		t.Errorf("%+v, %+v, %v", p, repo, err)
	}
}

// A plugin whose files have another checksum than errand.yaml says is refused, with the checksum that they have.
func TestPlugins(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "house")
	if os.MkdirAll(filepath.Join(dir, "commands"), 0o700) != nil ||
		os.WriteFile(filepath.Join(dir, "commands", "greet.md"), []byte("Greet.\n"), 0o600) != nil {
		t.Fatal(dir)
	}
	c := config.Config{}
	c.Routing.Plugins = []config.Plugin{{Path: dir, SHA256: strings.Repeat("0", 64)}}
	_, err := plugins(c)
	if err == nil || !strings.Contains(err.Error(), "its files have the checksum ") {
		t.Fatal(err)
	}
	_, sum, _ := strings.Cut(err.Error(), "its files have the checksum ")
	// worker -print-config says so, too. A front door does not need the directory.
	file := filepath.Join(t.TempDir(), "errand.yaml")
	text := "plugins: [{path: " + dir + ", sha256: " + strings.Repeat("0", 64) + "}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for role, want := range map[config.Role]bool{config.RoleWorker: true, config.RoleFrontdoor: false} {
		_, err := Load(func(name string) string { return map[string]string{"ERRAND_CONFIG": file}[name] }, role)
		if err == nil || strings.Contains(err.Error(), "plugins.1") != want {
			t.Errorf("role %v: %v", role, err)
		}
	}
	c.Routing.Plugins[0].SHA256 = sum[:64]
	all, err := plugins(c)
	if err != nil || len(all) != 1 || all[0].Repo != "house" || !slices.Equal(all[0].Names(), []string{"command greet"}) {
		t.Errorf("%+v, %v", all, err)
	}
}
