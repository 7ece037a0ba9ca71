package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/errand-fleet/errand/internal/hostlist"
)

const referenceHead = `# Settings

The environment variables of workers and front doors, usually in ` + "`.env`" + ` ([configure.md](configure.md)). An empty
variable counts as not set. ` + "`worker -print-config`" + ` shows those in force, and the Configuration page explains them.
What a team decides, such as repositories, budgets and rules, is in ` + "`errand.yaml`" + `: see its [keys](#errandyaml).
`

const keysHead = `
## errand.yaml

` + "`errand.example.yaml`" + ` shows every key where it belongs. NAME is a name that you choose or that the section says.
`

// reference returns docs/settings.md: a table of the variables for each group, and of the keys of each section.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, group := range new(Config).ByGroup() {
		fmt.Fprintf(&b, "\n## %s\n\n| variable | default | meaning |\n|---|---|---|\n", group[0].Group)
		for _, s := range group {
			preset := ""
			if s.Default != "" {
				preset = "`" + s.Default + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, preset, cell(s.Help))
		}
	}
	b.WriteString(keysHead)
	for _, section := range keysOf(reflect.TypeFor[Routing]()) {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", section.Tag.Get("yaml"), section.Tag.Get("help"))
		if rows := keyRows(section.Type, ""); len(rows) > 0 {
			b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n" + strings.Join(rows, ""))
		}
	}
	return b.String()
}

// keyRows returns a row for each key below a value of errand.yaml.
func keyRows(typ reflect.Type, path string) (rows []string) {
	for typ.Kind() == reflect.Map || typ.Kind() == reflect.Slice {
		if typ.Kind() == reflect.Map {
			path += "NAME."
		}
		typ = typ.Elem()
	}
	for _, f := range keysOf(typ) {
		key := path + f.Tag.Get("yaml")
		if below := keyRows(f.Type, key+"."); len(below) > 0 {
			rows = append(rows, below...)
			continue
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", key, kindOf(f.Type), f.Tag.Get("default"),
			cell(f.Tag.Get("help"))))
	}
	return rows
}

// kindOf describes the values of a type.
func kindOf(typ reflect.Type) string {
	switch {
	case typ.Kind() == reflect.Pointer:
		return kindOf(typ.Elem())
	case typ.Kind() == reflect.Map:
		return "names with values"
	case typ.Kind() == reflect.Slice || typ == reflect.TypeFor[hostlist.List]():
		return "a list"
	}
	return yamlForms[typ.Kind()]
}

// cell returns a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
