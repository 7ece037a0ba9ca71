package instructions

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tidy removes what editors leave in texts: a byte order mark and the first half of line ends.
func tidy(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
}

// header is what comes before a text, between two lines of dashes.
type header map[string]any

// list returns a value that is a list, or a text with commas.
func (h header) list(key string) (all []string) {
	switch v := h[key].(type) {
	case string:
		deep := 0 // commas within braces are alternatives
		for _, one := range strings.FieldsFunc(v, func(r rune) bool {
			switch r {
			case '{':
				deep++
			case '}':
				deep--
			}
			return r == ',' && deep <= 0
		}) {
			all = append(all, strings.TrimSpace(one))
		}
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok {
				all = append(all, strings.TrimSpace(s))
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// frontmatter splits a text into its head and the rest. A head that is no YAML, as in description: a: b, is read as
// lines of keys and values, which the CLI does too.
func frontmatter(text string) (header, string) {
	rest, found := strings.CutPrefix(text, "---\n")
	inside, body, closed := strings.Cut("\n"+rest, "\n---")
	if !found || !closed {
		return nil, text
	}
	_, body, _ = strings.Cut(body, "\n")
	var h header
	if err := yaml.Unmarshal([]byte(inside), &h); err == nil {
		return h, body
	}
	h = header{}
	for line := range strings.Lines(inside) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), ": "); ok && !strings.ContainsAny(key, " \t") {
			h[key] = strings.TrimSpace(value)
		}
	}
	return h, body
}
