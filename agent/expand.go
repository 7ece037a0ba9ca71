package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// serverVars are what a value may speak of.
type serverVars struct{ Thread, Repo, Run string }

// serverEntry is a server as the CLI reads it from its configuration.
type serverEntry struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// expand fills in what a run is about. The error names every value that cannot be filled in.
func (m MCPServer) expand(v serverVars, getenv func(string) string) (serverEntry, error) {
	public := func(string) (string, error) {
		return "", valueError("everybody can see the arguments of a process: put it into env")
	}
	secret := func(name string) (string, error) {
		switch value := getenv(name); {
		case value == "":
			return "", valueError(name + " is not set in the environment")
		case strings.Contains(value, "${"):
			return "", valueError(name + " holds ${, which the CLI would expand once more")
		default:
			return value, nil
		}
	}
	var errs []error
	one := func(where, text string, env func(string) (string, error)) string {
		filled, err := fill(where, text, v, env)
		errs = append(errs, err)
		return filled
	}
	all := func(where string, values map[string]string) map[string]string {
		filled := maps.Clone(values)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			filled[key] = one(where+" "+key, values[key], secret)
		}
		return filled
	}
	e := serverEntry{Type: m.Type, Command: m.Command, URL: m.URL}
	for i, arg := range m.Args {
		e.Args = append(e.Args, one(fmt.Sprintf("argument %d", i+1), arg, public))
	}
	e.Env, e.Headers = all("env", m.Env), all("header", m.Headers)
	return e, errors.Join(errs...)
}

// fill expands one value. Conditions and loops are refused: with them, what is wrong could wait for the one run that comes by.
func fill(where, text string, v serverVars, env func(string) (string, error)) (string, error) {
	t, err := template.New(where).Funcs(template.FuncMap{"env": env}).Parse(text)
	if err != nil {
		return "", err
	}
	for _, n := range t.Root.Nodes {
		if k := n.Type(); k != parse.NodeText && k != parse.NodeAction {
			return "", fmt.Errorf("%s: %s: only values can stand here, such as {{.Repo}}", where, n)
		}
	}
	var b strings.Builder
	err = t.Execute(&b, v)
	if reason, ok := errors.AsType[valueError](err); ok {
		err = fmt.Errorf("%s: %w", where, reason) // without the template's own words about it
	}
	return b.String(), err
}

// valueError says why there is no value.
type valueError string

func (e valueError) Error() string { return string(e) }
