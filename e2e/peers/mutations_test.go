package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/errand-fleet/errand/internal/fake/contract"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// TestMutations spoils each recorded call in every way that it can be spoilt, and the check of the fakes refuses it:
// each field gets a value of another type, each required field is left out, and a field is added.
func TestMutations(t *testing.T) {
	t.Parallel()
	refused, tolerated := 0, map[string]bool{}
	for _, c := range readCalls(t) {
		if c.Name == "POST /graphql" {
			continue // see TestGraphQLMutations
		}
		for _, part := range parts(c) {
			if err := part.check(part.value); err != nil {
				t.Errorf("the recorded call is refused: %v", err)
			}
			bites := false
			for _, m := range mutations(part.value, "") {
				if err := part.check(m.value); err != nil {
					bites = true
					refused++
				} else if !strings.HasPrefix(m.what, "without ") { // the field may be optional
					tolerated[part.name+": "+m.what] = true
				}
			}
			if !bites && !isOpen(part.name) {
				t.Errorf("%s: no mutation of %v is refused", part.name, part.value)
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d mutations are refused", refused)
	}
	for known := range open {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(tolerated)), func(one string) bool {
			return strings.HasPrefix(one, known)
		}) {
			t.Errorf("%s is refused now: remove it from the list", known)
		}
	}
	for _, one := range slices.Sorted(maps.Keys(tolerated)) {
		if !isOpen(one) {
			t.Errorf("%s is not refused", one)
		}
	}
}

// The fake's webhooks are what GitHub describes, and a value of another type anywhere in them is refused.
func TestWebhookMutations(t *testing.T) {
	t.Parallel()
	_, payloads := hubPayloads(t)
	for _, p := range payloads {
		var payload object
		if err := json.Unmarshal(p.body, &payload); err != nil {
			t.Fatal(err)
		}
		schema := fmt.Sprintf("%s %s event", p.event, payload["action"])
		if err := githubfake.Contract().Check(schema, payload, true); err != nil {
			t.Error(err)
		}
		refused, all := 0, mutations(payload, "")
		for _, m := range all {
			if githubfake.Contract().Check(schema, m.value, true) != nil {
				refused++
			}
		}
		// Many fields may be absent, and some may be of several types.
		if refused < len(all)*3/4 || refused < 500 {
			t.Errorf("%s: %d of %d mutations are refused", schema, refused, len(all))
		}
	}
}

// open are mutations that the descriptions allow, by the beginning of what TestMutations calls them, with the reason.
var open = map[string]string{
	"PATCH /repos/{o}/{r}/check-runs/{id} body: with another field":  "the description has this body in two forms, which allow more",
	"apps.manifest.create argument: with another field in manifest.": "the SDK's type of a manifest allows more",
	"apps.connections.open argument":                                 "the method has no arguments, and the type of it allows any",
	"chat.postMessage argument: metadata.event_payload.":             "an app chooses what is in it",
	"chat.postMessage argument: with another field in metadata.":     "likewise",
}

func isOpen(what string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(open)), func(known string) bool {
		return strings.HasPrefix(what, known)
	})
}

// part is the query, the body or the arguments of a call.
type part struct {
	name  string
	value object
	check func(any) error
}

func parts(c contract.Call) (all []part) {
	check := func(set *contract.Set, schema string, first bool) func(any) error {
		return func(v any) error { return set.Check(schema, v, first) }
	}
	if !strings.Contains(c.Name, " ") {
		schema := c.Name + " argument"
		return []part{{schema, c.Args, check(slackfake.Contract(), schema, true)}}
	}
	all = []part{{c.Name + " query", c.Args, check(githubfake.Contract(), c.Name+" query", false)}}
	if body, ok := c.Body.(object); ok {
		all = append(all, part{c.Name + " body", body, check(githubfake.Contract(), c.Name+" body", false)})
	}
	return all
}

// mutation is a spoilt copy of a value.
type mutation struct {
	what  string
	value any
}

// mutations returns copies of v, each with one mistake. at is where v is.
func mutations(v any, at string) (all []mutation) {
	put := func(what string, value any) { all = append(all, mutation{what, value}) }
	switch v := v.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			without := maps.Clone(v)
			delete(without, name)
			put("without "+at+name, without)
			for _, m := range append(mutations(v[name], at+name+"."), otherTypes(v[name], at+name)...) {
				changed := maps.Clone(v)
				changed[name] = m.value
				put(m.what, changed)
			}
		}
		more := maps.Clone(v)
		more["errand_unknown"] = "x"
		put("with another field in "+at, more)
	case []any:
		for i := range v {
			for _, m := range append(mutations(v[i], at+"#."), otherTypes(v[i], at+"#")...) {
				changed := slices.Clone(v)
				changed[i] = m.value
				put(m.what, changed)
			}
		}
	}
	return all
}

// otherTypes returns values of other types than that of v.
func otherTypes(v any, at string) (all []mutation) {
	for _, other := range []any{"text", 4711.5, true, object{"a": "b"}, []any{object{"a": 1.0}}} {
		if fmt.Sprintf("%T", other) != fmt.Sprintf("%T", v) {
			text, _ := json.Marshal(other)
			all = append(all, mutation{at + " = " + string(text), other})
		}
	}
	return all
}

// Every recorded query is valid by GitHub's whole schema, of which the fake has an extract, and none of its mutations
// is.
func TestGraphQLMutations(t *testing.T) {
	t.Parallel()
	schema := graphQLSchema(t)
	queries, mutated := 0, 0
	for _, c := range readCalls(t) {
		query, ok := c.Body.(string)
		if c.Name != "POST /graphql" || !ok {
			continue
		}
		queries++
		doc, err := gqlparser.LoadQueryWithRules(schema, query, rules.NewDefaultRules())
		if err != nil {
			t.Errorf("%v: %s", err, query)
			continue
		}
		var names []string
		collectNames(doc.Operations[0].SelectionSet, &names)
		for _, name := range names {
			spoilt := strings.Replace(query, name, name+"Errand", 1)
			if _, err := gqlparser.LoadQueryWithRules(schema, spoilt, rules.NewDefaultRules()); err == nil {
				t.Errorf("%s instead of %s is not refused in %s", name+"Errand", name, query)
			}
			mutated++
		}
		for _, v := range doc.Operations[0].VariableDefinitions {
			for _, spoilt := range []string{
				strings.Replace(query, v.Type.String(), "Boolean", 1),
				strings.Replace(query, "$"+v.Variable+":", "$errand:", 1),
			} {
				if _, err := gqlparser.LoadQueryWithRules(schema, spoilt, rules.NewDefaultRules()); err == nil {
					t.Errorf("not refused: %s", spoilt)
				}
				mutated++
			}
		}
	}
	if queries == 0 || mutated < 20 {
		t.Errorf("%d queries with %d mutations", queries, mutated)
	}
}

// graphQLSchema is what GitHub publishes, without the fields that it defines twice.
func graphQLSchema(t *testing.T) *ast.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("node_modules", "@octokit", "graphql-schema", "schema.graphql"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := parser.ParseSchemas(validator.Prelude, &ast.Source{Name: "schema.graphql", Input: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range doc.Definitions {
		seen := map[string]bool{}
		d.Fields = slices.DeleteFunc(d.Fields, func(f *ast.FieldDefinition) bool {
			twice := seen[f.Name]
			seen[f.Name] = true
			return twice
		})
	}
	schema, err := validator.ValidateSchemaDocument(doc)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// collectNames adds the names of all fields.
func collectNames(set ast.SelectionSet, names *[]string) {
	for _, one := range set {
		switch one := one.(type) {
		case *ast.Field:
			*names = append(*names, one.Name)
			collectNames(one.SelectionSet, names)
		case *ast.InlineFragment:
			collectNames(one.SelectionSet, names)
		}
	}
}
