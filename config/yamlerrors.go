package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// yamlLine matches the messages of yaml.v3 about syntax, whose errors have no structure.
var yamlLine = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)

// Problem returns a problem of a value of errand.yaml: `/etc/errand.yaml:3: repositories.acme/api is not …`. Entries of
// lists are counted from 1.
func (c *Config) Problem(what, remedy string, path ...string) Problem {
	return routingCheck{file: c.Paths.File, root: c.Document}.problem(what, remedy, path)
}

func (v routingCheck) problem(what, remedy string, path []string) Problem {
	n := line(v.root, path)
	return Problem{v.at(n) + " " + strings.Join(path, "."), what, remedy, n}
}

// at returns the place of a line, for a problem; 0: of the file.
func (v routingCheck) at(line int) string {
	if line == 0 {
		return v.file + ":"
	}
	return fmt.Sprintf("%s:%d:", v.file, line)
}

// addSyntax reports text that is not YAML.
func addSyntax(p *Problems, file string, data []byte, err error) {
	where, text, remedy := file, strings.TrimPrefix(err.Error(), "yaml: "), "correct the line"
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		where, text = file+":"+m[1]+":", m[2]
	}
	if !utf8.Valid(data) {
		remedy = "save the file as UTF-8"
	} else if tab, _ := regexp.Match(`(?m)^ *\t`, data); tab {
		remedy = "indent it with spaces instead of tabs"
	}
	p.add(where, "is not YAML ("+text+")", remedy)
}

// form compares a value with the type that it is for. It reports unknown and repeated keys, and what cannot be decoded.
func (v routingCheck) form(n *yaml.Node, typ reflect.Type, path ...string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case n.Kind == yaml.MappingNode && (typ.Kind() == reflect.Map || len(keysOf(typ)) > 0):
		v.mapping(n, typ, path)
	case n.Kind == yaml.SequenceNode && typ.Kind() == reflect.Slice:
		for i, one := range n.Content {
			v.form(one, typ.Elem(), append(path, strconv.Itoa(i+1))...)
		}
	case n.Decode(reflect.New(typ).Interface()) != nil || typ.Kind() == reflect.Int && !integral(n):
		what := "does not have the right form"
		if n.Kind == yaml.ScalarNode && slices.Contains(quotable, typ.Kind()) {
			what = fmt.Sprintf("is %q", n.Value)
		}
		if len(path) > 0 {
			what = strings.Join(path, ".") + " " + what
		}
		form := cmp.Or(yamlForms[typ.Kind()], "keys with values")
		if typ == reflect.TypeFor[hostlist.List]() {
			form = yamlForms[reflect.Slice] + ", or any, none or learn"
		}
		v.report(n, what, "write "+form)
	}
}

// integral reports whether a number is whole. yaml.v3 decodes 0.5 into an int as 0, which would mean no limit.
func integral(n *yaml.Node) bool {
	var f float64
	return n.Decode(&f) == nil && f == float64(int64(f))
}

// mapping compares the keys of a value with the type that it is for.
func (v routingCheck) mapping(n *yaml.Node, typ reflect.Type, path []string) {
	fields, seen := map[string]reflect.Type{}, map[string]int{}
	var keys []string
	for _, f := range keysOf(typ) {
		keys = append(keys, f.Tag.Get("yaml"))
		fields[f.Tag.Get("yaml")] = f.Type
	}
	for pair := range slices.Chunk(n.Content, 2) {
		key, value := pair[0], pair[1]
		switch field := fields[key.Value]; {
		case seen[key.Value] > 0:
			v.report(key, fmt.Sprintf("repeats the key %q of line %d", key.Value, seen[key.Value]),
				"keep one of them")
		case key.ShortTag() == "!!merge" && value.Kind == yaml.SequenceNode:
			v.form(value, reflect.SliceOf(typ), path...)
		case key.ShortTag() == "!!merge":
			v.form(value, typ, path...)
		case typ.Kind() == reflect.Map:
			v.form(value, typ.Elem(), append(path, key.Value)...)
		case field != nil:
			v.form(value, field, append(path, key.Value)...)
		default:
			section := strings.Join(path[:min(len(path), 1)], "")
			v.report(key, fmt.Sprintf("knows no key %q", key.Value), cmp.Or(removed[section+": "+key.Value],
				"remove it or correct its spelling; the keys here are "+strings.Join(keys, ", ")))
		}
		seen[key.Value] = key.Line
	}
}

// report adds a problem with the line of a node.
func (v routingCheck) report(n *yaml.Node, what, remedy string) {
	*v.p = append(*v.p, Problem{v.at(n.Line), what, remedy, n.Line})
}

// quotable are the kinds of values that are no credentials.
var quotable = []reflect.Kind{reflect.Bool, reflect.Int, reflect.Float64}

// yamlForms says how to write a value of a kind.
var yamlForms = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.String: "text", reflect.Int: "a whole number", reflect.Float64: "a number",
	reflect.Slice: "a list, each entry after a dash",
}

// keysOf returns the fields of a type that are keys, in order.
func keysOf(typ reflect.Type) (fields []reflect.StructField) {
	if typ.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(typ) {
		if key := f.Tag.Get("yaml"); key != "" && key != ",inline" && key != "-" {
			fields = append(fields, f)
		}
	}
	return fields
}
