package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever the environment says of proxies, host is not behind one.
func TestExempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ upper, lower, wantUpper, wantLower string }{
		{"", "", "x", "x"},
		{"a,b", "", "a,b,x", "a,b,x"},
		{"", "c", "c,x", "c,x"},
		{"a", "c", "a,x", "c,x"},
		{"*", "", "*", "*"},
	} {
		env := map[string]string{"OTHER": "1"}
		if c.upper != "" {
			env["NO_PROXY"] = c.upper
		}
		if c.lower != "" {
			env["no_proxy"] = c.lower
		}
		exempt(env, "x")
		if diff := cmp.Diff(map[string]string{
			"OTHER": "1", "NO_PROXY": c.wantUpper, "no_proxy": c.wantLower,
		}, env); diff != "" {
			t.Errorf("%q and %q: %s", c.upper, c.lower, diff)
		}
	}
}
