package findings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ids lists findings by their names.
func ids(all []Finding) string {
	var names []string
	for _, f := range all {
		names = append(names, f.ID)
	}
	return strings.Join(names, " ")
}

func TestPlace(t *testing.T) {
	t.Parallel()
	d := Diff{"a.go": ParsePatch(patch)}
	p := Plan{Inline: []Finding{
		{ID: "minor", Severity: Minor, Path: "a.go", Line: 1, Original: "one"},
		{ID: "unsure", Severity: Critical, Confidence: Low, Path: "a.go", Line: 1, Original: "one"},
		{ID: "elsewhere", Severity: Major, Path: "b.go", Line: 1},
		{ID: "second", Severity: Major, Path: "a.go", Line: 3, Original: "--- two and a half"},
		{ID: "first", Severity: Major, Path: "a.go", Line: 2, Original: "TWO"},
		{ID: "gravest", Severity: Critical, Path: "a.go", Line: 4, Original: "three"},
	}}
	Gravest(p.Inline)
	for _, c := range []struct {
		l               Limits
		inline, summary string
		below           int
	}{
		{Limits{Max: 6, Floor: Minor}, "gravest first second minor", "unsure elsewhere", 0},
		{Limits{Max: 2, Floor: Minor}, "gravest first", "unsure second elsewhere minor", 0},
		{Limits{Max: 6, Floor: Major}, "gravest first second", "unsure elsewhere", 1},
		{Limits{Max: 0, Floor: Critical}, "", "unsure gravest", 4},
	} {
		got := p.Place(d, c.l)
		if diff := cmp.Diff(fmt.Sprint(c.inline, "|", c.summary, "|", c.below),
			fmt.Sprint(ids(got.Inline), "|", ids(got.Summary), "|", got.Below)); diff != "" {
			t.Errorf("%+v: %s", c.l, diff)
		}
	}
	// What was said to be for the summary stays there, and nothing has a place without a diff.
	p.Inline, p.Summary = p.Inline[:1], p.Inline[1:]
	got := p.Place(nil, Limits{Max: 6, Floor: Major})
	if len(got.Inline) != 0 || ids(got.Summary) != "unsure gravest first second elsewhere" || got.Below != 1 {
		t.Errorf("%q, %q, %d below", ids(got.Inline), ids(got.Summary), got.Below)
	}
	if got = got.Posted(map[string]bool{"second": true, "gravest": true}); ids(got.Inline) != "gravest second" ||
		ids(got.Summary) != "unsure first elsewhere" {
		t.Errorf("%q, %q", ids(got.Inline), ids(got.Summary))
	}
}
