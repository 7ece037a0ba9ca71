package findings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got, err := Read(json.RawMessage(`{"summary": " One thing. ", "findings": [
		{"id": "off-by-one", "severity": "major", "confidence": "high", "path": "./a.go", "line": 3, "start_line": 3,
		 "claim": "It counts\n wrong.", "evidence": " Because.\n` + "```suggestion" + `\nx\n` +
		"```" + `", "original": "a\r\n", "suggestion": "b\n"},
		{"id": "off-by-one", "severity": "minor", "confidence": "low", "path": "", "line": 7, "side": "LEFT", "claim": "x", "evidence": ""},
		{"id": "NO WORD", "severity": "critical", "confidence": "medium", "path": "b\u0000.go", "line": -1, "start_line": -4, "claim": "y", "evidence": ""}],
		"earlier": [{"id": "k1", "status": "fixed"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Answer{
		Summary: "One thing.",
		Findings: []Finding{
			{
				ID: "off-by-one", Severity: Major, Confidence: High, Path: "a.go", Line: 3, Side: Right,
				Claim: "It counts wrong.", Evidence: "Because.\n```\nx\n```", Original: "a", Suggestion: "b",
			},
			{ID: "finding-2", Severity: Minor, Confidence: Low, Side: Left, Claim: "x"},
			{ID: "finding-3", Severity: Critical, Confidence: Medium, Side: Right, Claim: "y"},
		},
		Earlier: []Checked{{ID: "k1", Status: Fixed}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Long text should be cut at a harmless place.
func TestReadCuts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 10_000)
	raw, err := json.Marshal(Answer{Summary: long, Findings: []Finding{{
		ID: "a", Severity: Minor, Confidence: High, Path: long, Line: 1, Claim: long, Evidence: long, Suggestion: long,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	f := got.Findings[0]
	for what, c := range map[string]struct {
		text string
		want int
	}{
		"summary": {got.Summary, maxSummary}, "claim": {f.Claim, maxClaim}, "evidence": {f.Evidence, maxEvidence},
		"path": {f.Path, 0}, "suggestion": {f.Suggestion, 0},
	} {
		if n := len([]rune(c.text)); n != c.want {
			t.Errorf("%s: %d characters, want %d", what, n, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	finding := func(more string) string {
		return `{"summary": "", "findings": [{"id": "a", "severity": "minor", "confidence": "high", "path": "a", "line": 1, "claim": "x", "evidence": ""` + more + `}]}`
	}
	if _, err := Read(json.RawMessage(finding(""))); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{
		"nothing":    ``,
		"other JSON": `[]`,
		"two":        `{"summary": "", "findings": []} {}`,
		"more":       `{"summary": "", "findings": [], "approve": true}`,
		"severity":   finding(`, "severity": "blocker"`),
		"confidence": finding(`, "confidence": "sure"`),
		"side":       finding(`, "side": "MIDDLE"`),
		"claim":      finding(`, "claim": " \n"`),
		"line":       finding(`, "line": "one"`),
		"earlier":    `{"summary": "", "findings": [], "earlier": [{"id": "a", "status": "dismissed"}]}`,
		"many":       `{"summary": "", "findings": [` + strings.Repeat(`{"id": "a"},`, maxFindings) + `{"id": "a"}]}`,
		"long":       `{"summary": "` + strings.Repeat("x", maxAnswer) + `", "findings": []}`,
	} {
		if a, err := Read(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: read %+v", name, a)
		}
	}
}

// The schema and Read should know the same fields and words.
func TestSchemaIsWhatReadTakes(t *testing.T) {
	t.Parallel()
	type object struct {
		Properties map[string]struct {
			Enum  []string
			Items *object
		}
	}
	var all object
	if err := json.Unmarshal(Schema(), &all); err != nil {
		t.Fatal(err)
	}
	example := func(o object, name string) map[string]any {
		made := map[string]any{}
		for field, p := range o.Properties {
			made[field] = "word"
			switch {
			case len(p.Enum) > 0:
				made[field] = p.Enum[0]
			case field == "line" || field == "start_line":
				made[field] = 1
			case p.Items != nil:
				delete(made, field)
			}
		}
		if len(made) == 0 {
			t.Errorf("the schema has nothing on %s", name)
		}
		return made
	}
	finding, earlier := example(*all.Properties["findings"].Items, "findings"),
		example(*all.Properties["earlier"].Items, "earlier")
	raw, err := json.Marshal(map[string]any{"summary": "", "findings": []any{finding}, "earlier": []any{earlier}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(raw)
	if err != nil || got.Findings[0].Suggestion != "word" || got.Findings[0].Original != "word" {
		t.Errorf("%+v, %v", got, err)
	}
	for field, known := range map[string]func(string) bool{
		"severity":   func(s string) bool { return Severity(s).Known() },
		"confidence": func(s string) bool { return s == string(High) || s == string(Medium) || s == string(Low) },
		"side":       func(s string) bool { return s == string(Right) || s == string(Left) },
	} {
		for _, word := range all.Properties["findings"].Items.Properties[field].Enum {
			if !known(word) {
				t.Errorf("%s %q is in the schema only", field, word)
			}
		}
	}
}

// An agent that was talked into it could make buttons that replace what it likes, and fold away the text below.
func TestReadTakesEffectsAway(t *testing.T) {
	t.Parallel()
	const fence = "```"
	for in, want := range map[string]string{
		fence + "suggestion\nx\n" + fence:             fence + "\nx\n" + fence,
		"> ~~~~ \tSuggestion\n> x\n> ~~~~":            "> ~~~~\n> x\n> ~~~~",
		fence + "&#115;uggestion\nx\n" + fence:        fence + "text &#115;uggestion\nx\n" + fence,
		"- ~~~ sugg&#x65;stion y\n  x\n  ~~~":         "- ~~~text sugg&#x65;stion y\n  x\n  ~~~",
		fence + "go\nx & y\n" + fence:                 fence + "go\nx & y\n" + fence,
		`<pre lang="suggestion"><code>x</code></pre>`: `&lt;pre lang="suggestion"><code>x</code>&lt;/pre>`,
		"<details>\n< Summary>x":                      "&lt;details>\n&lt; Summary>x",
		"List<detail> and <predicate>":                "List<detail> and <predicate>",
	} {
		raw, err := json.Marshal(Answer{
			Summary: in, Findings: []Finding{{
				ID: "a", Severity: Minor, Confidence: High, Claim: "C " + in, Evidence: in,
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		if f := got.Findings[0]; got.Summary != want || f.Evidence != want ||
			f.Claim != "C "+strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q: %q, %q, %q, want %q", in, got.Summary, f.Claim, f.Evidence, want)
		}
	}
}

// The schema lists the kinds, and another one counts as none.
func TestKinds(t *testing.T) {
	t.Parallel()
	list, err := json.Marshal(kinds)
	if err != nil || !strings.Contains(schema, `"kind": {"enum": `+strings.ReplaceAll(string(list), ",", ", ")+"}") {
		t.Errorf("the schema does not have %s, %v", list, err)
	}
	for kind, want := range map[Kind]Kind{"tests": "tests", "taste": "", "": ""} {
		f := Finding{Severity: Major, Confidence: High, Claim: "x", Kind: kind}
		if err := f.tidy(); err != nil || f.Kind != want || f.Kind.Name() == "" {
			t.Errorf("%q becomes %q, %v", kind, f.Kind, err)
		}
	}
}
