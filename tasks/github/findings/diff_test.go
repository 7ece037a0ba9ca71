package findings

import (
	"fmt"
	"strings"
	"testing"
)

// Two hunks: lines 1-4 of the new version (of the old 1-3), and lines 11-12 (10-11), the last without a line break.
const patch = `@@ -1,3 +1,4 @@ package a
 one
-two
+TWO
+--- two and a half
 three
@@ -10,2 +11,2 @@ func a() {
-ten
+TEN
 eleven
\ No newline at end of file`

func TestAnchor(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	d := Diff{
		"a.go": ParsePatch(patch), "logo.png": ParsePatch(""), "new.go": ParsePatch("@@ -0,0 +1 @@\n+@@ -1 +1 @@"),
		"twice.go": ParsePatch("@@ -0,0 +1,9 @@\n+a {\n+\treturn err\n+}\n+b {\n+\treturn err\n+}\n+\n+\treturn err\r\n+" + long),
	}
	for _, c := range []struct {
		path        string
		side        Side
		start, line int
		quote       string
		want        string // empty: none
	}{
		{"a.go", Right, 0, 1, "one", "1"},
		{"a.go", Right, 0, 3, "--- two and a half", "3"}, // looks like a header
		{"a.go", Right, 0, 4, "three", "4"},
		{"a.go", Right, 0, 11, "TEN", "11"},
		{"a.go", Right, 0, 12, "eleven", "12"},
		{"a.go", Left, 0, 2, "two", "LEFT 2"},
		{"a.go", Left, 0, 3, "three", "LEFT 3"},
		{"a.go", Left, 0, 10, "ten", "LEFT 10"},
		{"a.go", "", 0, 1, "one", "1"},
		{"logo.png", Right, 0, 1, "x", ""},
		{"new.go", Right, 0, 1, "@@ -1 +1 @@", "1"},
		{"new.go", Left, 0, 0, "@@ -1 +1 @@", ""},
		{"none.go", Right, 0, 1, "one", ""},
		{"a.go", Right, 0, 0, "one", ""}, // the file as a whole

		// ranges
		{"a.go", Right, 2, 4, "TWO\n--- two and a half\nthree", "2-4"},
		{"a.go", Right, 2, 4, "three", "4"}, // what is not quoted is not shown
		{"a.go", Right, 2, 4, "--- two and a half\nthree", "3-4"},
		{"a.go", Right, 2, 4, "TWO\nthree", ""},
		{"a.go", Right, 9, 11, "nine\n\nTEN", "11"}, // not over two hunks
		{"a.go", Right, 9, 11, "TEN", "11"},
		{"a.go", Right, 3, 6, "--- two and a half\nthree\nfour\nfive", "3-4"},
		{"a.go", Right, 3, 6, "five", ""},
		{"a.go", Right, 5, 10, "five\n6\n7\n8\n9\nten", ""},
		{"a.go", Right, 9, 3, "--- two and a half", "3"}, // upside down
		{"a.go", Right, 3, 5, "TWO\n--- two and a half\nthree", "2-4"},
		{"a.go", Right, 1, 1 << 40, "--- two and a half", ""},

		// another text
		{"a.go", Right, 0, 1, "", ""},
		{"a.go", Right, 0, 1, " \n", ""},
		{"a.go", Right, 0, 2, "two", "LEFT 2"},
		{"a.go", Left, 0, 2, "TWO", "2"},
		{"a.go", Right, 0, 3, "TWO", "2"},
		{"a.go", Right, 0, 14, "TEN", ""}, // which the diff does not show: it may have that text, too
		{"a.go", Right, 0, 12, "--- two and a half", "3"},
		{"a.go", Right, 0, 12, "three", ""}, // too few words to be sure
		{"a.go", Right, 0, 1, "one and more", ""},
		{"a.go", Right, 0, 2, "  TWO\t", "2"},
		{"twice.go", Right, 0, 4, "return err", "5"},
		{"twice.go", Right, 0, 8, "return err", "8"},
		{"twice.go", Right, 0, 7, "\treturn err", "8"},
		{"twice.go", Right, 0, 6, "a {\n\treturn err\n}", "3"},
		{"twice.go", Right, 0, 7, "a {\n\n", ""}, // line 7 is blank
		{"twice.go", Right, 0, 3, "a {\n\n", "1"},
		{"twice.go", Right, 0, 7, "\n\n", ""},
		{"twice.go", Right, 5, 6, "a {\n\treturn err\n}", "2-3"},
		{"twice.go", Right, 0, 90, "a {\n\treturn err\n}", ""},
		{"twice.go", Right, 0, 90, "return err", ""},
		{"twice.go", Right, 0, 9, long[:250] + "…", "9"},
		{"twice.go", Right, 0, 9, long[:100], ""},
		{"twice.go", Right, 5, 6, "\treturn err\n}", "5-6"},
		{"twice.go", Right, 0, 3, "b {", "4"},
	} {
		f, ok := d.anchor(Finding{Path: c.path, Side: c.side, StartLine: c.start, Line: c.line, Original: c.quote})
		got := ""
		if ok {
			got = fmt.Sprint(f.Line)
			if f.StartLine != 0 {
				got = fmt.Sprintf("%d-%d", f.StartLine, f.Line)
			}
			if f.Side == Left {
				got = "LEFT " + got
			}
		}
		if got != c.want {
			t.Errorf("%s %s %d-%d %q: at %q, want %q", c.path, c.side, c.start, c.line, c.quote, got, c.want)
		}
	}
}

func TestSuggestionIsExact(t *testing.T) {
	t.Parallel()
	d := Diff{
		"a.go": ParsePatch(patch), "crlf.go": ParsePatch("@@ -1 +1 @@\n-a\r\n+b\r"),
		"long.go": ParsePatch("@@ -0,0 +1,6 @@\n+1\n+2\n+3\n+4\n+5\n+6"),
	}
	for name, c := range map[string]struct {
		f    Finding
		want bool
	}{
		"one line": {Finding{Path: "a.go", Line: 2, Original: "TWO", Suggestion: "two"}, true},
		"three lines": {Finding{
			Path: "a.go", StartLine: 2, Line: 4, Original: "TWO\n--- two and a half\nthree", Suggestion: "x",
		}, true},
		"carriage": {Finding{Path: "crlf.go", Line: 1, Original: "b", Suggestion: "c"}, true},
		"five": {Finding{
			Path: "long.go", StartLine: 2, Line: 6, Original: "2\n3\n4\n5\n6", Suggestion: "a\nb\nc\nd\ne",
		}, true},
		"takes six": {Finding{
			Path: "long.go", StartLine: 1, Line: 6, Original: "1\n2\n3\n4\n5\n6", Suggestion: "a",
		}, false},
		"gives six":    {Finding{Path: "long.go", Line: 1, Original: "1", Suggestion: "a\nb\nc\nd\ne\nf"}, false},
		"moved":        {Finding{Path: "a.go", Line: 1, Original: "TWO", Suggestion: "two"}, false},
		"part of it":   {Finding{Path: "a.go", StartLine: 3, Line: 4, Original: "three", Suggestion: "two"}, false},
		"indentation":  {Finding{Path: "a.go", Line: 2, Original: " TWO", Suggestion: "two"}, false},
		"no change":    {Finding{Path: "a.go", Line: 2, Original: "TWO", Suggestion: "TWO"}, false},
		"what is gone": {Finding{Path: "a.go", Line: 2, Side: Left, Original: "two", Suggestion: "x"}, false},
		"narrowed": {Finding{
			Path: "a.go", StartLine: 2, Line: 6, Original: "TWO\n--- two and a half\nthree\n\n", Suggestion: "x",
		}, false},
		"cut above":   {Finding{Path: "a.go", StartLine: 10, Line: 11, Original: "TEN", Suggestion: "x"}, false},
		"hidden":      {Finding{Path: "a.go", Line: 2, Original: "TWO", Suggestion: "if a\u202e { // b"}, false},
		"a line more": {Finding{Path: "a.go", Line: 2, Original: "TWO", Suggestion: "a\rb"}, false},
		"a tab":       {Finding{Path: "a.go", Line: 2, Original: "TWO", Suggestion: "\ttwo"}, true},
		"none":        {Finding{Path: "a.go", Line: 2, Original: "TWO"}, false},
	} {
		f, ok := d.anchor(c.f)
		if !ok || f.Exact != c.want {
			t.Errorf("%s: anchored %t, exact %t, want %t", name, ok, f.Exact, c.want)
		}
	}
}
