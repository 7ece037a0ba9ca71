package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// What makes the way there and back exact, and the second wall complete.
func TestCatalog(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, c := range catalog {
		if c.neutral == "" || c.verb == "" {
			t.Errorf("%s has no neutral name, or no words", name)
		}
		if twin, ok := seen[c.neutral]; ok {
			t.Errorf("%s and %s are both %s", name, twin, c.neutral)
		}
		seen[c.neutral] = name
		if _, ok := catalog[c.neutral]; ok {
			t.Errorf("%s: its neutral name %s is another tool's", name, c.neutral)
		}
		args := map[string]bool{}
		for theirs, neutral := range c.args {
			if _, ok := c.args[neutral]; ok || args[neutral] || theirs == neutral {
				t.Errorf("%s: %s stands for two arguments", name, neutral)
			}
			args[neutral] = true
		}
	}
	for profile, names := range tools {
		for _, name := range names {
			c, ok := catalog[name]
			if !ok {
				t.Errorf("%s is not in the table", name)
			}
			if profile != Write && !c.reads {
				t.Errorf("%s gives an agent that only reads %s", profile, name)
			}
		}
	}
}

func TestNeutral(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, input, neutral, want string }{
		{"Read", `{"file_path":"/w/a.go","limit":5}`, "read", `{"path":"/w/a.go","limit":5}`},
		{"Edit", `{"replace_all":true, "new_string":"b", "file_path":"a", "old_string":"file_path"}`, "edit", `{"replaceAll":true,"newText":"b","path":"a","oldText":"file_path"}`},
		{"Write", `{"file_path":"a","content":"{\"file_path\":1}"}`, "write", `{"path":"a","content":"{\"file_path\":1}"}`},
		{"Bash", `{"command":"ls","timeout":1e4,"novel":{"timeout":[1.50]}}`, "bash", `{"command":"ls","timeoutMs":1e4,"novel":{"timeout":[1.50]}}`},
		{"Glob", `{"pattern":"*","path":"x"}`, "find", `{"pattern":"*","path":"x"}`},
		{"Grep", `{"-i":true,"-A":2}`, "grep", `{"ignoreCase":true,"after":2}`},
		{
			"MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"y"},7,{}]}`,
			"multi_edit", `{"path":"a","edits":[{"oldText":"x","newText":"y"},7,{}]}`,
		},
		{"mcp__x__y", `{"file_path": 1}`, "mcp__x__y", `{"file_path": 1}`},
		{"mcp__errand__attach_file", `{"path":"a"}`, "attach_file", `{"path":"a"}`},
		{"Novelty", `{"file_path":1}`, "Novelty", `{"file_path":1}`},
		{"Read", `[1]`, "read", `[1]`},
		{"Read", `{"file_path":"a"} x`, "read", `{"file_path":"a"} x`},
		{"Read", `{"file_path":`, "read", `{"file_path":`},
		{"Read", ``, "read", ``},
		// What is not of the CLI's, and neutral for something of the CLI's.
		{"Read", `{"path":"a","file_path":"b"}`, "read", `{"file_path":"a","path":"b"}`},
		{"read", `{"path":"a"}`, "Read", `{"path":"a"}`},
	} {
		name, input := ToNeutral(c.tool, json.RawMessage(c.input))
		if name != c.neutral || string(input) != c.want {
			t.Errorf("%s %s: %s %s, want %s %s", c.tool, c.input, name, input, c.neutral, c.want)
		}
	}
}

func FuzzNeutral(f *testing.F) {
	f.Add("Novelty", []byte(`{"a":1}`))
	f.Add("Read", []byte(`{"path":1,"file_path":2,"file\u005fpath":3,"x":[{"file_path":"\ud800"}]}`))
	f.Add("multi_edit", []byte(` {"edits" : [ {"oldText":"\u00e9"}, null ], "edits":[]} `))
	for name := range catalog {
		f.Add(name, []byte(`{"file_path":"a","old_string":"b","command":"c","edits":[{"new_string":"d"}]}`))
	}
	f.Fuzz(func(t *testing.T, name string, input []byte) {
		there, middle := ToNeutral(name, slices.Clone(input))
		if back, got := FromNeutral(there, middle); back != name || !same(input, got) {
			t.Errorf("%s %s became %s %s by way of %s %s", name, input, back, got, there, middle)
		}
		there, middle = FromNeutral(name, slices.Clone(input))
		if back, got := ToNeutral(there, middle); back != name || !same(input, got) {
			t.Errorf("%s %s became %s %s by way of %s %s", name, input, back, got, there, middle)
		}
	})
}

// same reports whether two inputs are the same but for white space, and for how the names of arguments are escaped.
func same(a, b []byte) bool {
	plain := func(b []byte) []byte {
		v, err := jsontext.AppendFormat(nil, b, jsontext.AllowDuplicateNames(true))
		if err != nil {
			return b
		}
		return v
	}
	return bytes.Equal(plain(a), plain(b))
}
