package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/jsonschema-go/jsonschema"
)

// hostServer is the name under which the agent finds the tools of Spec.Tools: it sees them as mcp__errand__<name>.
const hostServer = "errand"

// Tool is something the agent may have done in this process, by whoever started the run.
type Tool struct {
	Name        string          // unique in its run: lower-case letters, digits and _, at most 48 bytes
	Description string          // for the agent: what it does, and when to use it
	Input       json.RawMessage // JSON schema (2020-12) of the arguments: an object
	ReadOnly    bool            // it changes nothing: the CLI runs several calls of such tools at once, of others one after another

	// Run does the work, on a goroutine of its own; several calls may be under way at once. Its arguments fit the schema. Its text,
	// or its error, is told to the agent after it has passed Config.Redactor. ctx ends with the run, with the run's own cause, or
	// when the agent does not want the result any more; Run must then return, because the run waits for it.
	Run func(ctx context.Context, args json.RawMessage) (string, error)
}

// NewTool makes a Tool whose schema is that of the struct In: fields without omitempty are required, and a `jsonschema` tag describes
// its field. It panics when In has no schema, which only a mistake in the program can bring about.
func NewTool[In any](name, description string, run func(context.Context, In) (string, error)) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("make tool %s: %v", name, err))
	}
	input, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("make tool %s: %v", name, err))
	}
	return Tool{Name: name, Description: description, Input: input, Run: func(ctx context.Context, args json.RawMessage) (string, error) {
		var in In
		if err := json.Unmarshal(args, &in); err != nil {
			return "", fmt.Errorf("read arguments: %w", err)
		}
		return run(ctx, in)
	}}
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// checkTools finds what would keep a tool from being offered.
func checkTools(tools []Tool) error {
	seen := map[string]bool{}
	for _, t := range tools {
		err := t.check()
		if err == nil && seen[t.Name] {
			err = errors.New("its name is taken")
		}
		if err != nil {
			return fmt.Errorf("tool %q: %w", t.Name, err)
		}
		seen[t.Name] = true
	}
	return nil
}

func (t Tool) check() error {
	switch {
	case !toolName.MatchString(t.Name):
		return errors.New("its name is not of the form [a-z][a-z0-9_]*")
	case t.Run == nil:
		return errors.New("it does nothing")
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(t.Input, &schema); err != nil {
		return fmt.Errorf("read its schema: %w", err)
	}
	if schema.Type != "object" {
		return errors.New("its arguments are not an object")
	}
	if _, err := schema.Resolve(nil); err != nil {
		return fmt.Errorf("resolve its schema: %w", err)
	}
	return nil
}
