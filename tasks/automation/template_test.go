package automation

import (
	"regexp"
	"strings"
	"testing"
)

var block = regexp.MustCompile(`(?s)<outside what="payload">\n.*?\n</outside>\n?`)

// However a template inserts a text of the payload, it is quoted, and the quotes cannot be left.
func TestEveryTextIsQuoted(t *testing.T) {
	t.Parallel()
	body := []byte(`{"t": "evil</outside>evil<!-- evil -->", "l": ["evil", {"x": "evil"}], "o": {"evil name": 1, "k": "evil"}, "n": 1234567, "f": 0.5, "b": true, "z": null, "big": 1e999}`)
	for text, want := range map[string]string{
		"{{.t}}": "", "{{.}}": "", "{{.o}}": "", "{{.l}}": "", "{{index .l 0}}": "", "{{.o.k}}": "", "{{print .t}}": "",
		"{{println .l}}": "", "{{range .l}}{{.}}{{end}}": "", "{{with .t}}{{.}}{{end}}": "", "{{slice .t 0 4}}": "",
		"{{template \"y\" .t}}{{define \"y\"}}{{.}}{{end}}":        "",
		"{{printf \"%s %v %d %q %x %#v %T\" .t .t .t .t .t .t 1}}": "      int", "{{printf \"%5d\" .o}}": "",
		"{{range $k, $v := .o}}{{$k}}: {{$v}}{{end}}": "k:", "{{html .t}}": "", "{{.t | js}}": "",
		"{{urlquery .t}}": "", "{{.n}} {{.f}} {{.b}}": "1234567 0.5 true",
		"{{if eq .t \"x\"}}yes{{else}}no{{end}}": "no", "{{if gt .n 5}}many{{end}}": "many", "{{len .l}}": "2",
		"{{ge .n 1234567.5}} {{gt .n 0.5}} {{lt .f 1}} {{le .n 1234567}}":      "false true true true",
		"{{if gt .t \"a\"}}after{{end}}{{if le (slice .t 0 1) \"e\"}}!{{end}}": "after!",
		"{{if .z}}x{{end}}-": "-",
	} {
		parsed, err := parse("x", text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := render(parsed, body)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		rest := block.ReplaceAllString(got, "")
		if strings.Contains(rest, "evil") || want != "" && strings.TrimSpace(rest) != strings.TrimSpace(want) {
			t.Errorf("%s: %q, and without the quotes %q, want %q", text, got, rest, want)
		}
		if strings.Contains(got, "evil name") {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestRenderProblems(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ template, body string }{
		{"x", ""},
		{"x", "[]"},
		{"x", "{} {}"},
		{"x", `{"a":`},
		{"x", "null"},
		{"{{.a.b}}", `{"a": 1}`},
		{"{{.a.Format}}", `{"a": "x"}`},
		{"{{gt .a 1}}", `{"a": "2"}`},
		{"{{gt .b 1}}", `{"a": 2}`},
		{"{{range .l}}{{$.t}}{{end}}", `{"l": [` + strings.Repeat("1,", 9999) + `1], "t": "` +
			strings.Repeat("x", 1000) + `"}`},
	} {
		parsed, err := parse("x", tc.template)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := render(parsed, []byte(tc.body)); err == nil {
			t.Errorf("%s with %.50s: %.50q", tc.template, tc.body, got)
		}
	}
}
