package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// documents returns the texts of README.md, docs and the others at the top by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(text)
		}
	}
	return texts
}

// Documents name only settings that exist.
func TestDocsNameSettings(t *testing.T) {
	t.Parallel()
	known := []string{
		"ERRAND_WORKER",            // ERRAND_WORKER=..., which the CLI's processes carry
		"ERRAND_FIRST_TOKEN_LIMIT", // the example of CONTRIBUTING.md for a new one
	}
	for _, s := range new(Config).Settings() {
		known = append(known, s.Name)
	}
	for file, text := range documents(t) {
		for _, name := range regexp.MustCompile(`\b(?:ERRAND|GITHUB|SLACK|REDIS|OTEL)_[A-Z0-9_]*[A-Z0-9]\b`).FindAllString(text, -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s names %s, which is no setting", file, name)
			}
		}
	}
}

// elsewhere are the first keys of YAML blocks that are no errand.yaml: Compose, the chart, Prometheus, and a repository's
// .github/errand.yml, which TestDocsSettings of tasks/github reads.
var elsewhere = []string{"services", "image", "scrape_configs", "setup", "triggers"}

// The blocks of errand.yaml in the documents are valid.
func TestDocsYAML(t *testing.T) {
	t.Parallel()
	valid := 0
	for file, text := range documents(t) {
		for _, m := range regexp.MustCompile("(?ms)^```yaml\n((\\w+):.*?)^```$").FindAllStringSubmatch(text, -1) {
			if slices.Contains(elsewhere, m[2]) {
				continue
			}
			var p Problems
			parseRouting(&p, "errand.yaml", []byte(m[1]))
			if err := p.err(); err != nil {
				t.Errorf("%s: %v\n%s", file, err, m[1])
			}
			valid++
		}
	}
	if valid < 10 {
		t.Errorf("found %d", valid)
	}
}

// errand.example.yaml shows every key where it belongs, at least once for each type and also in comments. TestExampleYAML checks
// that it has no others.
func TestExampleYAMLHasEveryKey(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("errand.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`(?m)^( {2,8})# ( *[\w-]+:( |$))`).ReplaceAll(data, []byte("$1$2"))
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	shown := shownKeys{}
	shown.walk(reflect.TypeFor[Routing](), root.Content[0])
	for typ, keys := range shown {
		for field := range typ.Fields() {
			if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key != "" && key != "-" && !keys[key] {
				t.Errorf("%s of %s is missing", key, typ)
			}
		}
	}
	if len(shown) < 15 {
		t.Errorf("walked through %d types", len(shown))
	}
}

// shownKeys are the keys that a file has for each type.
type shownKeys map[reflect.Type]map[string]bool

// walk walks through a node beside its type.
func (s shownKeys) walk(typ reflect.Type, n *yaml.Node) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	values := map[string]*yaml.Node{}
	if n.Kind == yaml.MappingNode {
		for pair := range slices.Chunk(n.Content, 2) {
			values[pair[0].Value] = pair[1]
		}
	}
	switch typ.Kind() {
	case reflect.Slice:
		for _, one := range n.Content {
			s.walk(typ.Elem(), one)
		}
	case reflect.Map:
		for _, one := range values {
			s.walk(typ.Elem(), one)
		}
	case reflect.Struct:
		if s[typ] == nil {
			s[typ] = map[string]bool{}
		}
		for field := range typ.Fields() {
			key, rest, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			value := values[key]
			if key == "" && rest == "inline" {
				value = n
			}
			if value != nil {
				s[typ][key] = true
				s.walk(field.Type, value)
			}
		}
	default:
	}
}
