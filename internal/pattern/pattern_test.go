package pattern

import "testing"

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns []string
		name     string
		want     bool
	}{
		{nil, "acme/api", true},
		{nil, "", true},
		{[]string{"Acme/*"}, "acme/API", true},
		{[]string{"acme/*"}, "acme", false},
		{[]string{"acme/*"}, "other/api", false},
		{[]string{"*"}, "acme/api", false},
		{[]string{"other/*", "acme/api"}, "acme/api", true},
		{[]string{"["}, "acme/api", false},
	} {
		if got := Covers(c.patterns, c.name); got != c.want {
			t.Errorf("%q covers %q: %t", c.patterns, c.name, got)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{"acme/*": true, "*": true, "": false, "[": false} {
		if got := Check(pattern); got != want {
			t.Errorf("%q: %t", pattern, got)
		}
	}
}
