package peers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/errand-fleet/errand/internal/fake/contract"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// editions are those of GitHub that errand supports.
var editions = []string{"api.github.com", "ghes-3.19", "ghes-3.18", "ghes-3.17"}

// The fake checks requests and its own answers against GitHub's published description, of which it has the parts that
// it needs.
func TestGitHubSchemas(t *testing.T) {
	t.Parallel()
	fake, err := githubfake.New(githubfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	e := contract.Extract{
		From:       []string{version(t, "@octokit/openapi"), version(t, "@octokit/app-permissions")},
		Operations: map[string]contract.Operation{},
	}
	var permissions permissionTable
	readJSON(t, &permissions, "@octokit", "app-permissions", "generated", "api.github.com.json")
	for _, edition := range editions {
		var doc object
		readJSON(t, &doc, "@octokit", "openapi", "generated", edition+".json")
		d := description{doc: doc, Variant: contract.Variant{Name: edition, Defs: object{}, Schemas: object{}}}
		for _, route := range fake.Routes() {
			method, path, _ := strings.Cut(route, " ")
			template, ok := d.template(path)
			operation := dig(doc, "paths", template, strings.ToLower(method))
			if !ok || operation == nil {
				if edition == editions[0] && !unpublished[route] {
					t.Errorf("%s: GitHub does not describe such an operation", route)
				}
				one := e.Operations[route]
				one.Absent = append(one.Absent, edition)
				e.Operations[route] = one
				continue
			}
			if edition == editions[0] {
				e.Operations[route] = contract.Operation{
					ID: operation["operationId"].(string), Permission: permissions.of(method, template),
				}
			}
			d.take(route, template, operation)
		}
		if edition == editions[0] {
			d.takeWebhooks(t)
		}
		d.correct()
		e.Variants = append(e.Variants, d.Variant)
	}
	compareExtract(t, e, filepath.Join("..", "..", "internal", "fake", "githubfake", "schemas.json.gz"))
}

// The fake's schema of GraphQL is a part of GitHub's.
func TestGraphQLSchema(t *testing.T) {
	t.Parallel()
	read := func(path ...string) *ast.SchemaDocument {
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := parser.ParseSchema(&ast.Source{Name: path[len(path)-1], Input: string(text)})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	whole := read("node_modules", "@octokit", "graphql-schema", "schema.graphql").Definitions
	for _, ours := range read("..", "..", "internal", "fake", "githubfake", "schema.graphql").Definitions {
		theirs := whole.ForName(ours.Name)
		if theirs == nil || theirs.Kind != ours.Kind {
			t.Errorf("GitHub has no %s %s", ours.Kind, ours.Name)
			continue
		}
		for _, value := range ours.EnumValues {
			if theirs.EnumValues.ForName(value.Name) == nil {
				t.Errorf("%s.%s: GitHub has no such value", ours.Name, value.Name)
			}
		}
		for _, field := range ours.Fields {
			if their := theirs.Fields.ForName(field.Name); their == nil || their.Type.String() != field.Type.String() {
				t.Errorf("%s.%s: GitHub has %v", ours.Name, field.Name, their)
			} else {
				compareArguments(t, ours.Name+"."+field.Name, field.Arguments, their.Arguments)
			}
		}
	}
}

// compareArguments expects arguments that GitHub has, and all that it requires.
func compareArguments(t *testing.T, field string, ours, theirs ast.ArgumentDefinitionList) {
	t.Helper()
	for _, argument := range ours {
		if their := theirs.ForName(argument.Name); their == nil || their.Type.String() != argument.Type.String() {
			t.Errorf("%s(%s: %s): GitHub has %v", field, argument.Name, argument.Type, their)
		}
	}
	for _, their := range theirs {
		if their.Type.NonNull && their.DefaultValue == nil && ours.ForName(their.Name) == nil {
			t.Errorf("%s lacks the argument %s", field, their.Name)
		}
	}
}

// unpublished are routes of GitHub that its description of REST leaves out.
var unpublished = map[string]bool{
	"POST /graphql": true, // checked against the schema of GraphQL
}

// The fake workspace checks arguments, its own answers and its events against the types of Slack's own SDK, as JSON
// Schema. Blocks have to be of a kind that the SDK knows.
func TestSlackSchemas(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(limited(t), "node", "slackschemas.mjs")
	said := &strings.Builder{}
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("slackschemas: %v: %s", err, said)
	}
	v := contract.Variant{Name: "slack"}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	v.Defs["Block"] = false // the SDK's way to allow blocks that it does not know
	compareExtract(t, contract.Extract{
		From:     []string{version(t, "@slack/web-api"), version(t, "@slack/types")},
		Variants: []contract.Variant{v},
	}, filepath.Join("..", "..", "internal", "fake", "slackfake", "schemas.json.gz"))
}

// permissionTable is what @octokit/app-permissions knows: by permission and level, the operations that it allows.
type permissionTable struct {
	Permissions map[string]map[string]any
}

func (p permissionTable) of(method, path string) map[string]string {
	var out map[string]string
	for name, levels := range p.Permissions {
		for level, list := range levels {
			list, _ := list.([]any) // "url" is text
			for _, one := range list {
				if shape(one.(string)) == shape(method+" "+path) {
					if out == nil {
						out = map[string]string{}
					}
					out[name] = level
				}
			}
		}
	}
	return out
}

type object = map[string]any

// version names a package with its version.
func version(t *testing.T, name string) string {
	t.Helper()
	var p struct{ Version string }
	readJSON(t, &p, append(strings.Split(name, "/"), "package.json")...)
	return name + " " + p.Version
}

// readJSON reads a file of a package.
func readJSON(t *testing.T, v any, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"node_modules"}, path...)...))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func dig(v any, path ...string) object {
	for _, name := range path {
		o, _ := v.(object)
		v = o[name]
	}
	o, _ := v.(object)
	return o
}

// description is one edition's OpenAPI document, and the extract of it.
type description struct {
	contract.Variant
	doc    object
	prefix string // of the names of components
}

var parameter = regexp.MustCompile(`\{\w+\}`)

// shape is a path without the names of its parameters, on which descriptions do not agree.
func shape(path string) string { return parameter.ReplaceAllString(path, "{}") }

// template is the path of the document that has the same shape.
func (d description) template(path string) (string, bool) {
	for one := range dig(d.doc, "paths") {
		if shape(one) == shape(path) {
			return one, true
		}
	}
	return "", false
}

// resolve follows references to components.
func (d description) resolve(v any) object {
	o, _ := v.(object)
	if ref, ok := o["$ref"].(string); ok {
		return dig(d.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return o
}

// take adds the schemas of one operation: of its query, its body, and the JSON of each answer.
func (d description) take(name, template string, operation object) {
	query := object{"type": "object", "properties": object{}, "additionalProperties": false}
	var required []any
	for _, list := range []any{operation["parameters"], dig(d.doc, "paths", template)["parameters"]} {
		list, _ := list.([]any)
		for _, one := range list {
			p := d.resolve(one)
			if p["in"] != "query" {
				continue
			}
			query["properties"].(object)[p["name"].(string)] = d.schema(p["schema"])
			if p["required"] == true {
				required = append(required, p["name"])
			}
		}
	}
	if required != nil {
		query["required"] = required
	}
	d.Schemas[name+" query"] = query
	body := d.resolve(operation["requestBody"])
	if schema := d.resolve(dig(body, "content", "application/json"))["schema"]; schema != nil {
		d.Schemas[name+" body"] = d.schema(schema)
		if body["required"] != true {
			d.Schemas[name+" body"] = object{"anyOf": []any{object{"type": "null"}, d.Schemas[name+" body"]}}
		}
	}
	for status, answer := range dig(operation, "responses") {
		if schema := dig(d.resolve(answer), "content", "application/json")["schema"]; schema != nil {
			d.Schemas[name+" "+status] = d.schema(schema)
		} else {
			d.Schemas[name+" "+status] = true
		}
	}
}

// sent are the webhooks that the fake sends.
var sent = regexp.MustCompile(`^(issue_comment|issues|pull_request|pull_request_review|pull_request_review_comment|pull_request_review_thread|check_run|push|status)$`)

// takeWebhooks adds the schemas of the webhooks, which GitHub describes in another document, for github.com.
func (d description) takeWebhooks(t *testing.T) {
	t.Helper()
	var doc object
	readJSON(t, &doc, "@octokit", "openapi-webhooks", "generated", editions[0]+".json")
	// the documents differ in some components
	hooks := description{doc: doc, Variant: contract.Variant{Defs: d.Defs}, prefix: "webhook."}
	for key, hook := range dig(doc, "webhooks") {
		schema := hooks.resolve(dig(hook, "post", "requestBody", "content", "application/json")["schema"])
		one := schema
		if either, ok := schema["oneOf"].([]any); ok {
			one = hooks.resolve(either[0])
		}
		name, action := strings.ReplaceAll(key, "-", "_"), ""
		if enum, ok := dig(one, "properties", "action")["enum"].([]any); ok {
			action = enum[0].(string) + " "
			name = strings.TrimSuffix(name, "_"+enum[0].(string))
		}
		if name = strings.Replace(name, "pull_request_review_request", "pull_request", 1); sent.MatchString(name) {
			d.Schemas[name+" "+action+"event"] = hooks.schema(schema)
		}
	}
}

// kept are the keywords that check something.
var kept = []string{
	"type", "enum", "required", "items", "properties", "additionalProperties", "allOf", "anyOf", "oneOf",
	"not", "const", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "$ref",
	"minProperties",
}

// schema turns a schema of OpenAPI 3.0 or 3.1 into JSON Schema without descriptions. What is not described is not
// allowed: the services would ignore it, and it would be a mistake of ours.
func (d description) schema(v any) any {
	o, ok := v.(object)
	if !ok {
		return v
	}
	out := object{}
	parts, _ := o["allOf"].([]any)
	if d.prefix != "" || slices.ContainsFunc(parts, func(part any) bool {
		return d.resolve(part)["additionalProperties"] == true
	}) {
		o = d.merged(o)
	}
	for _, word := range kept {
		value, there := o[word]
		if !there {
			continue
		}
		switch word {
		case "properties":
			all := object{}
			for name, p := range value.(object) {
				all[name] = d.schema(p)
			}
			value = all
		case "allOf", "anyOf", "oneOf":
			var all []any
			for _, one := range value.([]any) {
				all = append(all, d.schema(one))
			}
			value = all
		case "items", "additionalProperties", "not":
			value = d.schema(value)
		case "$ref":
			value = d.reference(value.(string))
		}
		out[word] = value
	}
	d.tighten(out)
	return nullable(o, out)
}

// merged returns a schema whose parts (allOf) are objects as one object, so that it says which properties there are.
func (d description) merged(o object) object {
	parts, _ := o["allOf"].([]any)
	all := object{"type": "object", "properties": object{}}
	required := map[string]bool{}
	for _, one := range parts {
		part := d.merged(d.resolve(one))
		properties, ok := part["properties"].(object)
		if !ok {
			return o
		}
		for name, p := range properties {
			if old := d.resolve(all["properties"].(object)[name]); len(d.resolve(p)) > len(old) || old == nil {
				all["properties"].(object)[name] = p
			}
		}
		list, _ := part["required"].([]any)
		for _, name := range list {
			required[name.(string)] = true
		}
	}
	if parts == nil {
		return o
	}
	var list []any
	for _, name := range slices.Sorted(maps.Keys(required)) {
		list = append(list, name)
	}
	if list != nil {
		all["required"] = list
	}
	return all
}

// tighten forbids properties that an object does not describe.
func (d description) tighten(out object) {
	_, said := out["additionalProperties"]
	if out["properties"] == nil || said {
		return
	}
	for _, how := range []string{"allOf", "anyOf", "oneOf"} {
		if out[how] != nil {
			return
		}
	}
	out["additionalProperties"] = false
}

// nullable says OpenAPI 3.0's way of allowing null in JSON Schema.
func nullable(o, out object) any {
	if o["nullable"] != true {
		return out
	}
	kind, simple := out["type"].(string)
	for _, word := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		simple = simple && out[word] == nil
	}
	if !simple {
		return object{"anyOf": []any{object{"type": "null"}, out}}
	}
	out["type"] = []any{kind, "null"}
	if enum, ok := out["enum"].([]any); ok && !slices.Contains(enum, nil) {
		out["enum"] = append(slices.Clone(enum), nil)
	}
	return out
}

// reference takes a component into the extract.
func (d description) reference(ref string) string {
	name := d.prefix + ref[strings.LastIndex(ref, "/")+1:]
	if _, known := d.Defs[name]; !known {
		d.Defs[name] = nil // it may refer to itself
		schema, _ := d.schema(dig(d.doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)).(object)
		d.Defs[name] = schema
		if slices.Contains(refusals, name) {
			delete(schema, "additionalProperties")
		}
	}
	return "#/$defs/" + name
}

// refusals are the components for errors. GitHub says more in them than the description does, such as the status, and
// clients read only the message.
var refusals = []string{"basic-error", "validation-error", "validation-error-simple"}

// corrections are where GitHub's description is wrong, and why we believe so. Each is by component or schema, with the
// path of properties to the place.
var corrections = []struct {
	name, path string
	correct    func(schema object) // of the place
	why        string
}{
	{
		"pull-request-review-comment", "line", allowNull,
		"comments whose line is gone have none: pull_request_review_comment in @octokit/webhooks-examples",
	},
	{"review-comment", "line", allowNull, "as above"},
	{"pull-request", "head repo", allowNull, "a fork may be deleted: the webhooks' description allows it"},
	{"pull-request", "head user", allowNull, "so may an account: the webhooks' description allows it"},
	{
		"webhook.pull-request-webhook", "head repo", allowNull,
		"the same fork, in webhooks: other actions describe it so",
	},
	{"webhook.pull-request-webhook", "head user", allowNull, "as above"},
	{"GET /app/installations 200", "account", func(o object) {
		alternatives := o["anyOf"].([]any)
		either := alternatives[1].(object)
		alternatives[1] = object{"anyOf": either["allOf"]}
	}, "nothing is a person and an enterprise: the component installation says that it is either"},
	{"GET /installation/repositories 200", "repositories", func(o object) {
		o["items"] = dig(o, "items")["allOf"].([]any)[0]
	}, "the other part of it is custom_properties, which the component repository has too"},
}

func allowNull(o object) {
	if o["type"] != nil {
		o["type"] = []any{o["type"], "null"}
		return
	}
	was := maps.Clone(o)
	clear(o)
	o["anyOf"] = []any{object{"type": "null"}, was}
}

// correct applies the corrections.
func (d description) correct() {
	for _, c := range corrections {
		at := dig(d.Defs, c.name)
		if at == nil {
			at = dig(d.Schemas, c.name, "items")
		}
		if at == nil {
			at = dig(d.Schemas, c.name)
		}
		for name := range strings.FieldsSeq(c.path) {
			at = dig(at, "properties", name)
		}
		if at != nil {
			c.correct(at)
		}
	}
}

// compareExtract compares the extract with the file, in which the later variants have only their differences.
func compareExtract(t *testing.T, e contract.Extract, path string) {
	t.Helper()
	first := e.Variants[0]
	for i := range e.Variants[1:] {
		v := &e.Variants[i+1]
		v.Defs, v.Schemas = changes(first.Defs, v.Defs), changes(first.Schemas, v.Schemas)
	}
	got, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		var zipped bytes.Buffer
		w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
		_, _ = w.Write(got)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, zipped.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		var was, is any
		_, _ = json.Unmarshal(want, &was), json.Unmarshal(got, &is)
		t.Errorf("%s is not what the packages say; run `make peers ARGS='-run %s -update'` (-file +packages):\n%.4000s",
			path, t.Name(), cmp.Diff(was, is))
	}
}

// changes is what differs from the first variant.
func changes(first, other map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(first)) {
		if v, ok := other[name]; !ok {
			out[name] = nil
		} else if !reflect.DeepEqual(v, first[name]) {
			out[name] = v
		}
	}
	for name, v := range other {
		if _, ok := first[name]; !ok {
			out[name] = v
		}
	}
	return out
}
