package findings

import (
	"fmt"
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
	d := Diff{
		"a.go": ParsePatch(patch), "logo.png": ParsePatch(""), "new.go": ParsePatch("@@ -0,0 +1 @@\n+@@ -1 +1 @@"),
	}
	for _, c := range []struct {
		path        string
		side        Side
		start, line int
		want        string // empty: none
	}{
		{"a.go", Right, 0, 1, "1"},
		{"a.go", Right, 0, 3, "3"}, // looks like a header
		{"a.go", Right, 0, 4, "4"},
		{"a.go", Right, 0, 5, ""},
		{"a.go", Right, 0, 10, ""},
		{"a.go", Right, 0, 11, "11"},
		{"a.go", Right, 0, 12, "12"},
		{"a.go", Right, 0, 13, ""},
		{"a.go", Left, 0, 2, "2"},
		{"a.go", Left, 0, 3, "3"},
		{"a.go", Left, 0, 4, ""},
		{"a.go", Left, 0, 10, "10"},
		{"a.go", Right, 0, 0, ""},
		{"a.go", "", 0, 1, "1"},
		{"a.go", Right, 2, 4, "2-4"},
		{"a.go", Right, 3, 12, "11-12"}, // not over two hunks
		{"a.go", Right, 2, 9, "2-4"},
		{"a.go", Right, 9, 11, "11"},
		{"a.go", Right, 5, 10, ""},
		{"a.go", Right, 9, 3, "3"}, // upside down
		{"a.go", Right, 1, 1 << 40, ""},
		{"logo.png", Right, 0, 1, ""},
		{"new.go", Right, 0, 1, "1"},
		{"new.go", Left, 0, 0, ""},
		{"none.go", Right, 0, 1, ""},
	} {
		f, ok := d.anchor(Finding{Path: c.path, Side: c.side, StartLine: c.start, Line: c.line})
		got := ""
		if ok {
			got = fmt.Sprint(f.Line)
			if f.StartLine != 0 {
				got = fmt.Sprintf("%d-%d", f.StartLine, f.Line)
			}
		}
		if got != c.want {
			t.Errorf("%s %s %d-%d: at %q, want %q", c.path, c.side, c.start, c.line, got, c.want)
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
		"gives six":     {Finding{Path: "long.go", Line: 1, Original: "1", Suggestion: "a\nb\nc\nd\ne\nf"}, false},
		"other line":    {Finding{Path: "a.go", Line: 1, Original: "TWO", Suggestion: "two"}, false},
		"part of it":    {Finding{Path: "a.go", StartLine: 2, Line: 3, Original: "TWO", Suggestion: "two"}, false},
		"nothing shown": {Finding{Path: "a.go", Line: 2, Suggestion: "two"}, false},
		"no change":     {Finding{Path: "a.go", Line: 2, Original: "TWO", Suggestion: "TWO"}, false},
		"what is gone":  {Finding{Path: "a.go", Line: 2, Side: Left, Original: "two", Suggestion: "x"}, false},
		"narrowed": {Finding{
			Path: "a.go", StartLine: 2, Line: 9, Original: "TWO\n--- two and a half\nthree", Suggestion: "x",
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
