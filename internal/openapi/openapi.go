// Package openapi checks in tests that the responses of a handler match an OpenAPI 3.1 description. It supports the
// parts of OpenAPI that errand's description uses.
package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// Document is a description. Use it from one goroutine at a time.
type Document struct {
	paths   map[string]map[string]any // by path
	root    map[string]any            // the whole document, for references
	schemas map[string]any            // the components, as JSON Schema
	seen    map[string]bool           // checked responses

	resolved map[string]*jsonschema.Resolved // schemas that were used, by their text
}

// Load reads a description from a file.
func Load(file string) (*Document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load description: %w", err)
	}
	d := &Document{
		root: map[string]any{}, paths: map[string]map[string]any{}, seen: map[string]bool{},
		resolved: map[string]*jsonschema.Resolved{},
	}
	if err := yaml.Unmarshal(data, &d.root); err != nil {
		return nil, fmt.Errorf("load description: %w", err)
	}
	for path, item := range object(d.root["paths"]) {
		d.paths[path] = object(item)
	}
	d.schemas = object(strict(object(d.root["components"])["schemas"]))
	return d, nil
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

// strict copies schemas, forbids properties that are not described, and rewrites references for JSON Schema. The
// published description allows more properties, so that responses may gain fields.
func strict(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = strict(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, value := range v {
			out[name] = strict(value)
		}
		if ref, ok := v["$ref"].(string); ok {
			out["$ref"] = strings.Replace(ref, "#/components/schemas/", "#/$defs/", 1)
		}
		if _, open := v["additionalProperties"]; !open && v["type"] == "object" {
			out["additionalProperties"] = false
		}
		return out
	}
	return v
}

// Operations lists the described operations, such as "GET /api/tasks/{id}", sorted.
func (d *Document) Operations() []string {
	var all []string
	for path, item := range d.paths {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if item[method] != nil {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Properties lists the properties of a component's schema, sorted.
func (d *Document) Properties(schema string) []string {
	return slices.Sorted(maps.Keys(object(object(d.schemas[schema])["properties"])))
}

// Unseen lists the described responses that were not checked, such as "GET /api/tasks/{id} 200", sorted.
func (d *Document) Unseen() []string {
	var all []string
	for _, op := range d.Operations() {
		method, path, _ := strings.Cut(op, " ")
		for status := range object(object(d.paths[path][strings.ToLower(method)])["responses"]) {
			if !d.seen[op+" "+status] {
				all = append(all, op+" "+status)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Check checks a response and its body.
func (d *Document) Check(resp *http.Response, body []byte) error {
	op, responses, err := d.find(resp.Request)
	if err != nil {
		return err
	}
	status := strconv.Itoa(resp.StatusCode)
	if responses[status] == nil {
		status = "default"
	}
	response := d.resolve(responses[status])
	if response == nil {
		return fmt.Errorf("%s: %s is not described", op, resp.Status)
	}
	d.seen[op+" "+status] = true
	content := object(response["content"])
	if len(content) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || content[kind] == nil {
		return fmt.Errorf("%s: %s content type %q is not described", op, resp.Status, resp.Header.Get("Content-Type"))
	}
	media := object(content[kind])
	switch {
	case kind == "text/event-stream":
		err = d.checkEvents(object(media["x-events"]), body)
	case strings.HasSuffix(kind, "json") && kind != "application/x-ndjson":
		err = d.validate(media["schema"], body)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", op, resp.Status, err)
	}
	return nil
}

// find returns the operation of a request, and its responses.
func (d *Document) find(r *http.Request) (op string, responses map[string]any, err error) {
	var best string
	for path := range d.paths {
		if matches(path, r.URL.EscapedPath()) && (best == "" || strings.Count(path, "{") < strings.Count(best, "{")) {
			best = path
		}
	}
	operation := object(d.paths[best][strings.ToLower(r.Method)])
	if operation == nil {
		return "", nil, fmt.Errorf("%s %s is not described", r.Method, r.URL.Path)
	}
	return r.Method + " " + best, object(operation["responses"]), nil
}

func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") && g != "" })
}

// resolve follows a reference to a component.
func (d *Document) resolve(v any) map[string]any {
	at := object(v)
	ref, ok := at["$ref"].(string)
	if !ok {
		return at
	}
	at = d.root
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = object(at[name])
	}
	return at
}

// checkEvents checks each event of a stream against the schema for its name. The data [DONE] ends a stream and is not
// checked.
func (d *Document) checkEvents(schemas map[string]any, body []byte) error {
	name := "message"
	for line := range strings.Lines(string(body)) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "":
			name = "message"
		case field == "event":
			name = value
		case field == "data" && value != "[DONE]":
			if schemas[name] == nil {
				return fmt.Errorf("event %q is not described", name)
			}
			if err := d.validate(schemas[name], []byte(value)); err != nil {
				return fmt.Errorf("event %q: %w", name, err)
			}
		}
	}
	return nil
}

// validate checks JSON against a schema of the description.
func (d *Document) validate(schema any, body []byte) error {
	resolved, err := d.schema(schema)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return errors.Join(fmt.Errorf("read response: %w", err), fmt.Errorf("%.200s", body))
	}
	return resolved.Validate(v)
}

// schema returns a schema of the document in the form that validates.
func (d *Document) schema(schema any) (*jsonschema.Resolved, error) {
	own, err := json.Marshal(strict(schema))
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	if known := d.resolved[string(own)]; known != nil {
		return known, nil
	}
	text, err := json.Marshal(map[string]any{"$defs": d.schemas, "allOf": []any{json.RawMessage(own)}})
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	d.resolved[string(own)] = resolved
	return resolved, nil
}
