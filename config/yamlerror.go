package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// What yaml.v3 says, in a form that can be taken apart. It keeps no structure of its own.
var (
	yamlLine    = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (.*) not found in type config\.(\w+)$`)
	yamlTwice   = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	yamlType    = regexp.MustCompile("^cannot unmarshal !!\\w+(?: `(.*)`)? into (.*)$")
)

// addYAML reports an error of yaml.v3 without the Go types it speaks of.
func addYAML(p *Problems, file, text string) {
	where := file
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		where, text = file+":"+m[1]+":", m[2]
	}
	if m := yamlUnknown.FindStringSubmatch(text); m != nil {
		p.add(where, fmt.Sprintf("knows no key %q", m[1]), "remove it or correct its spelling; the keys here are "+keysOf(m[2]))
		return
	}
	if m := yamlTwice.FindStringSubmatch(text); m != nil {
		p.add(where, fmt.Sprintf("repeats the key %q of line %s", m[1], m[2]), "keep one of them")
		return
	}
	if m := yamlType.FindStringSubmatch(text); m != nil {
		want := "keys with values"
		switch m[2] {
		case "bool":
			want = "true or false"
		case "string":
			want = "text"
		case "int":
			want = "a whole number"
		case "float64":
			want = "a number"
		case "[]string":
			want = "a list"
		case "[]config.Rule":
			want = "a list, each entry after a dash"
		}
		what := "does not have the right form"
		if m[1] != "" && m[2] != "map[string]string" { // there it may be a credential
			what = fmt.Sprintf("has %q in the wrong place", m[1])
		}
		p.add(where, what, "write "+want)
		return
	}
	p.add(where, "is not YAML ("+text+")", "correct the line")
}

// keysOf lists the keys of one of the types of errand.yaml.
func keysOf(name string) string {
	for _, t := range []reflect.Type{
		reflect.TypeFor[Routing](), reflect.TypeFor[Repository](), reflect.TypeFor[Channel](), reflect.TypeFor[Person](),
		reflect.TypeFor[Server](), reflect.TypeFor[Rule](), reflect.TypeFor[Limits](), reflect.TypeFor[Budgets](), reflect.TypeFor[SlackPeople](),
	} {
		if t.Name() != name {
			continue
		}
		var keys []string
		for f := range t.Fields() {
			keys = append(keys, f.Tag.Get("yaml"))
		}
		return strings.Join(keys, ", ")
	}
	return "in errand.example.yaml"
}
