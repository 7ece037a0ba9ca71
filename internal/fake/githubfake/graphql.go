package githubfake

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

//go:embed schema.graphql
var graphqlSDL string

// graphqlPath is where GitHub Enterprise Server has its other API: beside
// REST, not below it.
const graphqlPath = "/api/graphql"

// graphqlRoutes answers "POST /graphql", as Fail and Calls take it. Queries
// are checked against the schema and answered field by field, so what a client
// forgot to ask for is not there.
func (s *Server) graphqlRoutes() {
	schema := gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: graphqlSDL})
	s.api("POST /graphql", "", func(r *request) reply { return s.graphql(schema, r) })
}

// graphqlError is what is wrong in an answer of status 200.
type graphqlError struct {
	Type      string       `json:"type,omitempty"`
	Path      []any        `json:"path,omitempty"`
	Locations []lineColumn `json:"locations,omitempty"`
	Message   string       `json:"message"`
}

type lineColumn struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func (s *Server) graphql(schema *ast.Schema, r *request) reply {
	var ask struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName"`
		Variables     map[string]any `json:"variables"`
	}
	if a, good := decode(r, &ask); !good {
		return a
	}
	if ask.Query == "" {
		return ok(refusal("A query attribute must be specified and must be a string."))
	}
	doc, wrong := gqlparser.LoadQueryWithRules(schema, ask.Query, rules.NewDefaultRules())
	if len(wrong) > 0 {
		return ok(refusal(wrong[0].Message))
	}
	op := doc.Operations.ForName(ask.OperationName)
	if op == nil {
		return ok(refusal("An operation name is required"))
	}
	vars, err := validator.VariableValues(schema, op, ask.Variables)
	if err != nil {
		return ok(refusal(err.Error()))
	}
	root := s.queries(r)
	if op.Operation == ast.Mutation {
		root = s.mutations(r)
	}
	x := execution{vars: vars}
	answer := object{"data": x.object(root, op.SelectionSet, nil)}
	if len(x.errors) > 0 {
		answer["errors"] = x.errors
	}
	return ok(answer)
}

func refusal(message string) object { return object{"errors": []graphqlError{{Message: message}}} }

// resolve is a field with arguments, or one that may be refused.
type resolve func(args map[string]any) (any, *graphqlError)

// execution picks what was asked for out of objects. The field "__typename"
// of an object is what inline fragments go by.
type execution struct {
	vars   map[string]any
	errors []graphqlError
}

func (x *execution) object(from object, set ast.SelectionSet, path []any) object {
	out := object{}
	for _, one := range set {
		switch f := one.(type) {
		case *ast.Field:
			out[f.Alias] = x.field(from, f, append(slices.Clip(path), f.Alias))
		case *ast.InlineFragment:
			if f.TypeCondition == "" || f.TypeCondition == from["__typename"] {
				maps.Copy(out, x.object(from, f.SelectionSet, path))
			}
		}
	}
	return out
}

func (x *execution) field(from object, f *ast.Field, path []any) any {
	value, there := from[f.Name]
	if !there {
		panic(fmt.Sprintf("githubfake: no value for %s of %s", f.Name, f.ObjectDefinition.Name)) // a fault of the fake
	}
	if fn, call := value.(resolve); call {
		var wrong *graphqlError
		if value, wrong = fn(f.ArgumentMap(x.vars)); wrong != nil {
			wrong.Path, wrong.Locations = path, []lineColumn{{f.Position.Line, f.Position.Column}}
			x.errors = append(x.errors, *wrong)
			return nil
		}
	}
	switch v := value.(type) {
	case object:
		return x.object(v, f.SelectionSet, path)
	case []object:
		list := make([]object, len(v))
		for i, one := range v {
			list[i] = x.object(one, f.SelectionSet, append(slices.Clip(path), i))
		}
		return list
	}
	return value
}

// integer is a number: those of a query are int64, those of JSON float64.
func integer(v any) (n int, given bool) {
	switch v := v.(type) {
	case int64:
		return int(v), true
	case float64:
		return int(v), true
	}
	return 0, false
}

// connection pages a list as GraphQL does at GitHub: first or last is required and at
// most 100, and a cursor says how many are before it.
func connection(all []object) resolve {
	return func(args map[string]any) (any, *graphqlError) {
		size, forwards := integer(args["first"])
		given := forwards
		if !forwards {
			size, given = integer(args["last"])
		}
		switch {
		case !given:
			return nil, &graphqlError{
				Type:    "MISSING_PAGINATION_BOUNDARIES",
				Message: "You must provide a `first` or `last` value to properly paginate the connection.",
			}
		case size < 1 || size > 100:
			return nil, &graphqlError{
				Type:    "EXCESSIVE_PAGINATION",
				Message: fmt.Sprintf("Requesting %d records on the connection exceeds the `first` limit of 100 records.", size),
			}
		}
		from, to := cursor(args["after"], 0, len(all)), cursor(args["before"], len(all), len(all))
		if from = min(from, to); forwards {
			to = min(from+size, to)
		} else {
			from = max(from, to-size)
		}
		return object{
			"nodes": all[from:to], "totalCount": len(all),
			"pageInfo": object{
				"startCursor": orNull(strconv.Itoa(from)), "hasPreviousPage": from > 0,
				"endCursor": orNull(strconv.Itoa(to)), "hasNextPage": to < len(all),
			},
		}, nil
	}
}

// cursor is the place of a cursor in a list, or where a page begins without one.
func cursor(v any, without, size int) int {
	text, given := v.(string)
	if !given {
		return without
	}
	n, _ := strconv.Atoi(text)
	return min(max(n, 0), size)
}
