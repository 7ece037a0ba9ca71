package contract

import (
	"slices"
	"strings"
)

// Complete adds to an answer of a fake what its schema requires and the fake has no opinion on: null where that is
// allowed, else the plainest value. Clients so meet all that the service always sends. URLs begin with base.
func (s *Set) Complete(name string, v any, base string) any {
	c := completion{s, strings.TrimSuffix(base, "/")}
	return c.fill(v, s.Variants[0].Schemas[name])
}

type completion struct {
	*Set
	base string
}

func (c completion) fill(v, schema any) any {
	o, _ := schema.(map[string]any)
	if name, ok := reference(o); ok {
		return c.fill(v, c.own(0, defs, name))
	}
	for _, part := range list(o["allOf"]) {
		v = c.fill(v, part)
	}
	for _, how := range []string{"anyOf", "oneOf"} {
		if one := c.meant(v, list(o[how])); one != nil {
			v = c.fill(v, one)
		}
	}
	switch value := v.(type) {
	case []any:
		for n := range value {
			value[n] = c.fill(value[n], o["items"])
		}
	case map[string]any:
		properties, _ := o["properties"].(map[string]any)
		for name := range value {
			value[name] = c.fill(value[name], properties[name])
		}
		for _, name := range texts(o["required"]) {
			if _, there := value[name]; !there {
				value[name] = c.plainest(name, properties[name])
			}
		}
	}
	return v
}

// meant returns the alternative that a value lacks the least to match.
func (c completion) meant(v any, alternatives []any) (best any) {
	least := 0
	for n, one := range alternatives {
		if lack := cost(c.explain(0, v, one, "")); n == 0 || lack < least {
			best, least = one, lack
		}
	}
	return best
}

// plainest returns a value that a schema allows.
func (c completion) plainest(name string, schema any) any {
	o, _ := schema.(map[string]any)
	if ref, ok := reference(o); ok {
		return c.plainest(name, c.own(0, defs, ref))
	}
	for _, how := range []string{"anyOf", "oneOf", "allOf"} {
		if all := list(o[how]); len(all) > 0 {
			return c.plainest(name, all[0])
		}
	}
	types := texts(o["type"])
	if slices.Contains(types, "null") {
		return nil
	}
	if enum := list(o["enum"]); len(enum) > 0 {
		return enum[0]
	}
	if len(types) == 0 {
		return nil
	}
	switch types[0] {
	case "boolean":
		return false
	case "integer", "number":
		return 0.0
	case "array":
		return []any{}
	case "object":
		return c.fill(map[string]any{}, o)
	}
	switch {
	case strings.HasSuffix(name, "_at") || name == "date":
		return "2026-01-01T00:00:00Z"
	case strings.HasSuffix(name, "url") || name == "href":
		return c.base + "/" + name
	}
	return name
}
