package contract

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// explain says in words, a line for each problem, why a schema refuses a value. The validator stops at the first
// problem and does not say which of several alternatives is meant. It knows the usual keywords only, so it may find
// nothing.
func (s *Set) explain(i int, v, schema any, at string) (problems []string) {
	o, _ := schema.(map[string]any)
	if never, ok := o["not"].(map[string]any); schema == false || ok && len(never) == 0 {
		return []string{fmt.Sprintf("%s: %s is not of type any that is allowed", at, brief(v))}
	}
	if name, ok := reference(o); ok {
		problems = s.explain(i, v, s.own(i, defs, name), at)
	}
	for _, part := range list(o["allOf"]) {
		problems = append(problems, s.explain(i, v, part, at)...)
	}
	for _, how := range []string{"anyOf", "oneOf"} {
		problems = append(problems, s.nearest(i, v, list(o[how]), at)...)
	}
	if types := texts(o["type"]); types != nil && !slices.ContainsFunc(types, func(t string) bool { return is(v, t) }) {
		return append(problems, fmt.Sprintf("%s: %s is not of type %s", at, brief(v), strings.Join(types, " or ")))
	}
	if enum, limited := o["enum"]; limited && !slices.ContainsFunc(list(enum), func(one any) bool {
		return reflect.DeepEqual(one, v)
	}) {
		problems = append(problems, fmt.Sprintf("%s: %s is none of %v", at, brief(v), enum))
	}
	if c, fixed := o["const"]; fixed && !reflect.DeepEqual(c, v) {
		problems = append(problems, fmt.Sprintf("%s: %s is not %v", at, brief(v), c))
	}
	switch v := v.(type) {
	case map[string]any:
		problems = append(problems, s.explainObject(i, v, o, at)...)
	case []any:
		for n, one := range v {
			problems = append(problems, s.explain(i, one, o["items"], fmt.Sprintf("%s/%d", at, n))...)
		}
	}
	return problems
}

// nearest explains the alternative that is refused for the fewest reasons.
func (s *Set) nearest(i int, v any, alternatives []any, at string) (best []string) {
	for n, one := range alternatives {
		problems := s.explain(i, v, one, at)
		if n == 0 || cost(problems) < cost(best) {
			best = problems
		}
	}
	return best
}

// cost is low for what only lacks fields, and high for another kind of value.
func cost(problems []string) (sum int) {
	for _, p := range problems {
		switch {
		case strings.HasSuffix(p, ": missing"):
			sum++
		case strings.Contains(p, "is not of type") || strings.Contains(p, "/type: "):
			sum += 1_000_000
		default:
			sum += 1_000
		}
	}
	return sum
}

func (s *Set) explainObject(i int, v, schema map[string]any, at string) (problems []string) {
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range texts(schema["required"]) {
		if _, there := v[name]; !there {
			problems = append(problems, fmt.Sprintf("%s/%s: missing", at, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch property, known := properties[name]; {
		case known:
			problems = append(problems, s.explain(i, v[name], property, at+"/"+name)...)
		case schema["additionalProperties"] == false:
			problems = append(problems, fmt.Sprintf("%s/%s: no such field", at, name))
		default:
			problems = append(problems, s.explain(i, v[name], schema["additionalProperties"], at+"/"+name)...)
		}
	}
	return problems
}

func list(v any) []any { l, _ := v.([]any); return l }

// texts returns the strings of a keyword that is one string or several.
func texts(v any) (all []string) {
	if one, ok := v.(string); ok {
		return []string{one}
	}
	for _, one := range list(v) {
		all = append(all, fmt.Sprint(one))
	}
	return all
}

func is(v any, kind string) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	}
	return kind == "object"
}

func brief(v any) string {
	text := fmt.Sprintf("%#v", v)
	if v == nil {
		return "null"
	}
	switch v.(type) {
	case map[string]any:
		text = "an object"
	case []any:
		text = "a list"
	}
	return text[:min(len(text), 60)]
}
