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

func TestMatchText(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"claude-opus": true, "anthropic/claude-opus": true, "a/b/Claude-opus-1": true, "opus": false, "": false,
	} {
		if got := MatchText("*claude*", name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if !MatchText("x/*", "x/a/b") || MatchText("x/*", "xa/b") || MatchText("[", "[") {
		t.Error("a slash, or a broken pattern, matches wrongly")
	}
}

// All names have to be covered, not only the first or the last.
func TestCoversAll(t *testing.T) {
	t.Parallel()
	patterns := []string{"acme/*", "b/c"}
	for want, lists := range map[bool][][]string{
		true:  {{}, {"acme/a"}, {"acme/a", "b/c", "acme/d"}},
		false: {{"x/y"}, {"acme/a", "x/y"}, {"x/y", "acme/a"}, {"acme/a", "x/y", "b/c"}},
	} {
		for _, names := range lists {
			if got := Covers(patterns, names...); got != want {
				t.Errorf("%v: %v", names, got)
			}
		}
	}
}
