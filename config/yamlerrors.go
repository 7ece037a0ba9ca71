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

	"github.com/errand-fleet/errand/environment"
)

// The messages of yaml.v3, whose errors have no structure.
var (
	yamlLine    = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (.*) not found in type (?:config|environment)\.(\w+)$`)
	yamlTwice   = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	yamlType    = regexp.MustCompile("(?s)^cannot unmarshal (!!\\w+)(?: `(.*)`)? into (.*)$")
)

// Where returns the place of a value of errand.yaml, for a problem: `/etc/errand.yaml:3: repositories.acme/api`.
// Entries of lists are counted from 1.
func (c *Config) Where(path ...string) string {
	where := c.Paths.File + ":"
	var root yaml.Node
	if err := yaml.Unmarshal(c.Written, &root); err == nil && root.Kind == yaml.DocumentNode {
		where = fmt.Sprintf("%s:%d:", c.Paths.File, line(&root, path))
	}
	return where + " " + strings.Join(path, ".")
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

// addType reports a type error of yaml.v3 with its key and without its Go types.
func addType(p *Problems, file string, root *yaml.Node, text string) {
	where, n := file, 0
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		where, text = file+":"+m[1]+":", m[2]
		n, _ = strconv.Atoi(m[1])
	}
	if m := yamlUnknown.FindStringSubmatch(text); m != nil {
		p.add(where, fmt.Sprintf("knows no key %q", m[1]),
			cmp.Or(removed[m[1]], "remove it or correct its spelling; the keys here are "+keysOf(m[2])))
	} else if m := yamlTwice.FindStringSubmatch(text); m != nil {
		p.add(where, fmt.Sprintf("repeats the key %q of line %s", m[1], m[2]), "keep one of them")
	} else if m := yamlType.FindStringSubmatch(text); m != nil {
		what := "does not have the right form"
		paths := keysAt(root, nil, n, m[1], m[2])
		found := len(paths) == 1 && len(paths[0]) > 0
		// Where keys belong, it may be a credential.
		if m[2] != "" && !strings.HasPrefix(m[3], "map[") && !strings.Contains(m[3], "config.") {
			what = fmt.Sprintf("has %q in the wrong place", m[2])
			if found {
				what = fmt.Sprintf("is %q", m[2])
			}
		}
		if found {
			what = strings.Join(paths[0], ".") + " " + what
		}
		p.add(where, what, "write "+cmp.Or(yamlForms[m[3]], "keys with values"))
	} else {
		p.add(where, "cannot be read ("+text+")", "correct the line")
	}
}

// keysAt returns the paths, as of [line], of the values in a line that yaml.v3 describes by their tag and the beginning
// of their text.
func keysAt(n *yaml.Node, path []string, line int, tag, text string) (found [][]string) {
	if n.Line == line && n.ShortTag() == tag && strings.HasPrefix(n.Value, strings.TrimSuffix(text, "...")) {
		found = append(found, slices.Clone(path))
	}
	for i, child := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			found = append(found, keysAt(child, append(path, strconv.Itoa(i+1)), line, tag, text)...)
		case n.Kind == yaml.MappingNode && i%2 == 1:
			found = append(found, keysAt(child, append(path, n.Content[i-1].Value), line, tag, text)...)
		case n.Kind == yaml.DocumentNode:
			found = append(found, keysAt(child, path, line, tag, text)...)
		}
	}
	return found
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
