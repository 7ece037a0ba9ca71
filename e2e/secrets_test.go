package e2e

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
)

// secretsOf reads the table of docs/configure.md: the secrets of "both", "front door" and "worker".
func secretsOf(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := os.ReadFile("../docs/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n## Who needs which secret\n")
	table, _, _ = strings.Cut(table, "\n## ")
	all := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| (both|front door|worker) \| (.*) \|$`).FindAllStringSubmatch(table, -1) {
		for _, name := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(row[2], -1) {
			all[row[1]] = append(all[row[1]], name[1])
		}
	}
	if len(all) != 3 {
		t.Fatalf("docs/configure.md says who needs which secret only for %q", slices.Sorted(maps.Keys(all)))
	}
	return all
}

// The table has each secret of the configuration once.
func TestEachSecretBelongsToSomeone(t *testing.T) {
	t.Parallel()
	want := []string{"REDIS_URL"} // holds a password
	for _, s := range (config.Config{}).Settings() {
		if s.Secret && s.Name != "REDIS_PASSWORD" { // Compose puts it into REDIS_URL
			want = append(want, s.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(secretsOf(t)))...))); !slices.Equal(got, want) {
		t.Errorf("docs/configure.md has the secrets\n%q, want\n%q", got, want)
	}
}

// A front door gets no credential of the model, and a worker nothing that verifies events or logs people in.
func TestComposeGivesEachServiceItsOwnSecrets(t *testing.T) {
	t.Parallel()
	secrets, env := secretsOf(t), sample
	for _, name := range slices.Concat(slices.Collect(maps.Values(secrets))...) {
		if !strings.Contains(env, "\n"+name+"=") {
			env += name + "=s3cret\n"
		}
	}
	p := mustLoad(t, env)
	for service, row := range map[string]string{"enqueue": "front door", "worker": "worker"} {
		for of, names := range secrets {
			for _, name := range names {
				got := p.Services[service].Environment[name]
				if want := of == "both" || of == row; got == nil || (*got != "") != want {
					t.Errorf("%s: whether it has %s is not %v", service, name, want)
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(p.Services["redis"].Environment)); !slices.Equal(got, []string{"REDISCLI_AUTH"}) {
		t.Errorf("redis has %q in its environment", got)
	}
}

// The units read one file, and each removes what only the other needs.
func TestUnitsRemoveSecretsOfOthers(t *testing.T) {
	t.Parallel()
	secrets := secretsOf(t)
	for name, others := range map[string]string{"errand-enqueue": "worker", "errand-worker": "front door"} {
		removed := strings.Fields(strings.Join(readUnit(t, name)["UnsetEnvironment"], " "))
		if want := secrets[others]; !slices.Equal(slices.Sorted(slices.Values(removed)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s removes %q from its environment, want %q", name, removed, want)
		}
	}
}

// Front door and workers meet only at Redis, which reaches nothing else.
func TestComposeSeparatesTheNetworks(t *testing.T) {
	t.Parallel()
	p := mustLoad(t, sample)
	want := map[string][]string{
		"enqueue": {"front", "front-redis"}, "worker": {"internet", "worker-redis"}, "redis": {"front-redis", "worker-redis"},
	}
	for name, s := range p.Services {
		if got := slices.Sorted(maps.Keys(s.Networks)); !slices.Equal(got, want[name]) {
			t.Errorf("%s is in %q, want %q", name, got, want[name])
		}
	}
	for name, n := range p.Networks {
		if internal := strings.HasSuffix(name, "-redis"); bool(n.Internal) != internal {
			t.Errorf("network %s: whether it is internal is not %v", name, internal)
		}
	}
}
