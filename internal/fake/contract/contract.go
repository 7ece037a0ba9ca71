// Package contract checks what is sent to a service, and what a fake of it answers, against schemas that others
// published. The fakes embed an extract of these schemas. `make peers` compares the extracts with the npm packages that
// they come from.
package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Extract is the stored form of the schemas that a fake needs, as gzipped JSON.
type Extract struct {
	From       []string             // packages with their versions
	Operations map[string]Operation `json:",omitempty"` // by the fake's name for them
	Variants   []Variant            // the first is whole; each other has only what differs from it
}

// Operation describes a call in the service's own terms.
type Operation struct {
	ID string // as the service's documents call it
	// the permissions of an App that allow the call, each with its level
	Permission map[string]string `json:",omitempty"`
	Absent     []string          `json:",omitempty"` // variants that do not have the operation
}

// Variant is one edition of a service, such as one release of GitHub Enterprise Server. A null schema means that the
// edition does not have it.
type Variant struct {
	Name    string
	Defs    map[string]any // what schemas refer to as #/$defs/NAME
	Schemas map[string]any // JSON Schema by name, such as "GET /user 200"
}

// Set is the schemas of one service. It is safe for concurrent use.
type Set struct {
	Extract

	mu       sync.Mutex
	compiled map[string]*jsonschema.Resolved // by variant and name
}

// Embedded returns a function that reads, once, an extract that is part of the program.
func Embedded(zipped []byte) func() *Set {
	return sync.OnceValue(func() *Set {
		s, err := load(zipped)
		if err != nil {
			panic(err)
		}
		return s
	})
}

// Breaches collects what a fake has seen or sent that its schemas do not allow. It is safe for concurrent use; its zero
// value is empty.
type Breaches struct {
	mu  sync.Mutex
	all []string
}

// Add records a breach.
func (b *Breaches) Add(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, text)
}

// Drain returns the breaches since the last call.
func (b *Breaches) Drain() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.all
	b.all = nil
	return all
}

// load reads an extract.
func load(zipped []byte) (*Set, error) {
	s := &Set{compiled: map[string]*jsonschema.Resolved{}}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("read extract: %w", err)
	}
	if err := json.NewDecoder(r).Decode(&s.Extract); err != nil {
		return nil, fmt.Errorf("read extract: %w", err)
	}
	return s, nil
}

// Has reports whether there is a schema of this name.
func (s *Set) Has(name string) bool { return s.Variants[0].Schemas[name] != nil }

// Check checks a value, decoded from JSON, against the schema in each variant that has it. A name without a schema is
// an error. Only the first variant is consulted if first is set.
func (s *Set) Check(name string, v any, first bool) error {
	if !s.Has(name) {
		return fmt.Errorf("%s: no schema has it", name)
	}
	for i := range s.Variants {
		if i > 0 && first {
			break
		}
		schema, err := s.compile(i, name)
		if err == nil && schema != nil {
			err = schema.Validate(v)
		}
		if err == nil {
			continue
		}
		if problems := s.explain(i, v, s.own(i, schemas, name), ""); len(problems) > 0 {
			err = errors.New(strings.Join(problems, "; "))
		}
		return fmt.Errorf("%s: %s: %w", s.Variants[i].Name, name, err)
	}
	return nil
}

// own returns a definition or schema as the variant has it.
func (s *Set) own(i int, part func(Variant) map[string]any, name string) any {
	if v, changed := part(s.Variants[i])[name]; changed {
		return v
	}
	return part(s.Variants[0])[name]
}

func defs(v Variant) map[string]any    { return v.Defs }
func schemas(v Variant) map[string]any { return v.Schemas }

// compile returns the schema with all that it refers to; nil if it is the same as in the first variant, or absent.
func (s *Set) compile(i int, name string) (*jsonschema.Resolved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strconv.Itoa(i) + name
	if known, ok := s.compiled[key]; ok {
		return known, nil
	}
	body := s.own(i, schemas, name)
	_, differs := s.Variants[i].Schemas[name]
	used := map[string]any{}
	s.collect(i, body, used)
	for def := range used {
		_, changed := s.Variants[i].Defs[def]
		differs = differs || changed
	}
	if body == nil || !differs {
		s.compiled[key] = nil
		return nil, nil
	}
	text, err := json.Marshal(map[string]any{"$defs": used, "allOf": []any{body}})
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s.compiled[key] = resolved
	return resolved, nil
}

// collect adds to used what a schema refers to, directly and indirectly.
func (s *Set) collect(i int, v any, used map[string]any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			s.collect(i, one, used)
		}
	case map[string]any:
		if name, ok := reference(v); ok && used[name] == nil {
			used[name] = s.own(i, defs, name)
			s.collect(i, used[name], used)
		}
		for _, one := range v {
			s.collect(i, one, used)
		}
	}
}

func reference(schema map[string]any) (string, bool) {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(ref, "#/$defs/")
}

// Form returns what a query or a form says, with values of the types that the schema of this name wants. Values that
// cannot be read so stay text, which the schema then refuses.
func (s *Set) Form(name string, form url.Values) map[string]any {
	out := map[string]any{}
	root := s.Variants[0].Schemas[name]
	for field, values := range form {
		var types []string
		s.types(root, field, &types)
		text := values[0]
		var v any
		switch {
		case slices.Contains(types, "boolean") && (text == "0" || text == "1"):
			out[field] = text == "1"
		case !slices.Contains(types, "string") && json.Unmarshal([]byte(text), &v) == nil:
			out[field] = v
		default:
			out[field] = text
		}
	}
	return out
}

// types adds the types that a property may have; with an empty property, those of the schema itself.
func (s *Set) types(v any, property string, types *[]string) {
	schema, _ := v.(map[string]any)
	if name, ok := reference(schema); ok {
		s.types(s.Variants[0].Defs[name], property, types)
	}
	for _, how := range []string{"allOf", "anyOf", "oneOf"} {
		for _, one := range list(schema[how]) {
			s.types(one, property, types)
		}
	}
	if property != "" {
		properties, _ := schema["properties"].(map[string]any)
		if p := properties[property]; p != nil {
			s.types(p, "", types)
		}
		return
	}
	*types = append(*types, texts(schema["type"])...)
}
