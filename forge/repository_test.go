package forge

import (
	"fmt"
	"strings"
	"testing"
)

func ExampleParseRepository() {
	r, err := ParseRepository("gitlab.example.com/platform/billing/api")
	fmt.Println(r.Host, r.Path, err)
	// Output: gitlab.example.com platform/billing/api <nil>
}

func TestParseRepository(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Repository{
		"acme/api":                    {"", "acme/api"},
		"acme/.github":                {"", "acme/.github"},
		"a_c-m.e/A.p_i-1":             {"", "a_c-m.e/A.p_i-1"},
		"github.com/acme/api":         {"github.com", "acme/api"},
		"group/subgroup/api":          {"", "group/subgroup/api"},
		"git.example/a/b/c":           {"git.example", "a/b/c"},
		strings.Repeat("a/", 9) + "b": {"", strings.Repeat("a/", 9) + "b"},
	} {
		got, err := ParseRepository(name)
		if err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{
		"", "api", "/api", "acme/", "a//b", "../api", "acme/..", "acme/.", "acme/a..b", "./api", "acme/.git",
		"acme/.-x", "-x/api", "acme/-x",
		".acme/api", "github.com/.acme/api", "a/b.git/c", "a/b/.git", "acme/a b", "acme/a\n", "acme/$(x)", "acme\\api",
		"acme/api\x00", "äcme/api", "https://x/y",
		"a+b/c", "acme/" + strings.Repeat("a", 101), strings.Repeat("a/", 200) + "b",
	} {
		if got, err := ParseRepository(name); err == nil {
			t.Errorf("%q: %+v, want an error", name, got)
		}
	}
}
