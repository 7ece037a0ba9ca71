package config

import (
	"bytes"
	"maps"
	"strings"
	"testing"
)

func TestSettingsShowNoSecret(t *testing.T) {
	t.Parallel()
	c := loadFull(t)
	given := 0
	for _, s := range c.Settings() {
		if s.Given() {
			given++
		}
		if leaks(s.Value) || s.Secret && s.Value != "" && s.Value != redacted {
			t.Errorf("%s is shown as %s", s.Name, s.Value)
		}
	}
	if given != len(c.Given) {
		t.Errorf("%d are given, want %d", given, len(c.Given))
	}
}

// A given 0, which is no limit, is not the same as none.
func TestZeroIsShown(t *testing.T) {
	t.Parallel()
	vars := full()
	vars["ERRAND_RUN_PROCESSES"] = "0"
	c, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil || !strings.Contains(printed.String(), "\nERRAND_RUN_PROCESSES=0\n") {
		t.Errorf("printed %s, %v", &printed, err)
	}
}

// The digest of errand.yaml is of the values in the file, and not of what this version of errand makes of them.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(text string) string {
		c := Config{Paths: Paths{File: "/errand.yaml"}}
		_, c.Document = parseRouting(new(Problems), c.Paths.File, []byte(text))
		return c.Digest()
	}
	want := digest("limits: {user: 2, repository: 3}\nprices: {any: {glm: {input: 0, output: 1}}}")
	same := "# Ours.\nprices: {any: {glm: {output: 1, input: 0}}}\nlimits:\n  repository: 3\n  user: 2\n"
	if got := digest(same); got != want {
		t.Errorf("the same values have the digests %q and %q", got, want)
	}
	for _, other := range []string{
		"", "limits: {user: 2, repository: 3}", strings.Replace(same, "user: 2", "user: 3", 1), same + "later: 1",
	} {
		if digest(other) == want {
			t.Errorf("%q has the same digest", other)
		}
	}
}

// The digest has what all processes share, with the values in force, and nothing that each may have for itself.
func TestDigestOfSettings(t *testing.T) {
	t.Parallel()
	digest := func(change map[string]string) string {
		vars := full()
		maps.Copy(vars, change)
		c, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest()
	}
	want := digest(map[string]string{"ERRAND_LINK_DAYS": "7"})
	for name, value := range map[string]string{
		"ERRAND_REDIS_REPLICAS": "7", "ERRAND_OBJECTS": "s3://another/place", "ERRAND_PUBLIC_URL": "https://b.test",
		"ERRAND_LINK_DAYS": "0", "ERRAND_RUN_LIMIT": "7h",
		"SLACK_API_URL": "https://slack.test/", "GITHUB_URL": "https://github.test",
	} {
		if digest(map[string]string{"ERRAND_LINK_DAYS": "7", name: value}) == want {
			t.Errorf("with another %s the digest is the same", name)
		}
	}
	if digest(map[string]string{"ERRAND_LINK_DAYS": "", "ERRAND_POOL": "another", "ERRAND_CONCURRENCY": "7"}) != want {
		t.Error("a default that is given, or what is a worker's own, changes the digest")
	}
}
