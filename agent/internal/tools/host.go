package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/jsonschema-go/jsonschema"
)

// ServerName is the name of the host's server: the agent sees its tools as mcp__errand__<name>.
const ServerName = "errand"

// Tool is a tool that the host of a run offers to the agent.
type Tool struct {
	Name        string          // unique in its run: lower-case letters, digits and _, at most 48 bytes
	Description string          // for the agent: what the tool does, and when to use it
	Input       json.RawMessage // JSON schema (2020-12) of the arguments: an object
	ReadOnly    bool            // it changes nothing: the CLI makes calls of such tools concurrently, of others one after another

	// Run makes a call, on its own goroutine; several calls may run at once. Its arguments fit the schema. The agent gets its text, or its
	// error, redacted. ctx ends with the run, with the run's cause, or when the agent withdraws the call; Run must then return, because
	// the run waits for it.
	Run func(ctx context.Context, args json.RawMessage) (string, error)
}

// New returns a Tool whose schema is that of the struct In: fields without omitempty are required, and a `jsonschema` tag describes its
// field. It panics if In has no schema, which is a mistake in the program.
func New[In any](name, description string, run func(context.Context, In) (string, error)) Tool {
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

// Check returns an error if one of the tools cannot be offered.
func Check(tools []Tool) error {
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
		return errors.New("it has no Run function")
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
