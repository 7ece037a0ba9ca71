package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/environment"
)

// The messages of yaml.v3, whose errors have no structure.
var (
	yamlLine    = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (.*) not found in type (?:config|environment)\.(\w+)$`)
	yamlTwice   = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	yamlType    = regexp.MustCompile("^cannot unmarshal !!\\w+(?: `(.*)`)? into (.*)$")
)

// addYAML reports an error of yaml.v3 without its Go types.
func addYAML(p *Problems, file, text string) {
	where := file
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		where, text = file+":"+m[1]+":", m[2]
	}
	if m := yamlUnknown.FindStringSubmatch(text); m != nil {
		p.add(where, fmt.Sprintf("knows no key %q", m[1]),
			"remove it or correct its spelling; the keys here are "+keysOf(m[2]))
	} else if m := yamlTwice.FindStringSubmatch(text); m != nil {
		p.add(where, fmt.Sprintf("repeats the key %q of line %s", m[1], m[2]), "keep one of them")
	} else if m := yamlType.FindStringSubmatch(text); m != nil {
		what := "does not have the right form"
		if m[1] != "" && m[2] != "map[string]string" { // there it may be a credential
			what = fmt.Sprintf("has %q in the wrong place", m[1])
		}
		p.add(where, what, "write "+cmp.Or(yamlForms[m[2]], "keys with values"))
	} else {
		p.add(where, "is not YAML ("+text+")", "correct the line")
	}
}

// yamlForms says how to write a value of a Go type.
var yamlForms = map[string]string{
	"bool": "true or false", "string": "text", "int": "a whole number", "float64": "a number", "[]string": "a list",
	"[]config.Rule": "a list, each entry after a dash", "[]config.Grant": "a list, each entry after a dash",
	"[]config.Credential": "a list, each entry after a dash",
}

// keysOf lists the keys of one of the types of errand.yaml.
func keysOf(name string) string {
	for _, t := range []reflect.Type{
		reflect.TypeFor[Routing](), reflect.TypeFor[Repository](), reflect.TypeFor[Channel](),
		reflect.TypeFor[Person](), reflect.TypeFor[Server](), reflect.TypeFor[Registry](), reflect.TypeFor[Rule](),
		reflect.TypeFor[Limits](), reflect.TypeFor[Budgets](), reflect.TypeFor[SlackPeople](), reflect.TypeFor[Login](),
		reflect.TypeFor[Grant](), reflect.TypeFor[RepositorySecret](), reflect.TypeFor[Schedule](),
		reflect.TypeFor[Hook](), reflect.TypeFor[Webhook](), reflect.TypeFor[Credential](), reflect.TypeFor[Price](),
		reflect.TypeFor[environment.PullRequests](),
	} {
		if t.Name() != name {
			continue
		}
		var keys []string
		for _, f := range reflect.VisibleFields(t) {
			if key := f.Tag.Get("yaml"); key != ",inline" && key != "-" {
				keys = append(keys, key)
			}
		}
		return strings.Join(keys, ", ")
	}
	return "in errand.example.yaml"
}
