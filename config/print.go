package config

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Print writes every variable as NAME=value, group by group. Secrets are hidden, and unset variables are commented out
// with their defaults. With the secrets filled in, the output is an env file for a shell or Compose.
func (c Config) Print(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, group := range c.ByGroup() {
		fmt.Fprintln(out, "#", group[0].Group)
		for _, s := range group {
			if s.Given() {
				fmt.Fprintf(out, "%s=%s\n", s.Name, Quote(s.Value))
			} else {
				fmt.Fprintf(out, "# %s=%s\n", s.Name, Quote(cmp.Or(s.Default, s.Value)))
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "# %s\n", c.Summary())
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}

// Summary describes the content of errand.yaml in one line, or says that it is missing.
func (c Config) Summary() string {
	var parts []string
	sections := reflect.ValueOf(c.Routing)
	for _, f := range keysOf(sections.Type()) {
		name, value := f.Tag.Get("yaml"), sections.FieldByIndex(f.Index)
		switch kind := value.Kind(); {
		case value.IsZero():
		case kind == reflect.Map, kind == reflect.Slice:
			parts = append(parts, fmt.Sprintf("%s (%d)", name, value.Len()))
		default:
			parts = append(parts, name)
		}
	}
	const nothing = "no repositories, limits or budgets are in force"
	switch {
	case c.Paths.File == "":
		return "No errand.yaml: " + nothing
	case len(parts) == 0:
		return c.Paths.File + " sets nothing: " + nothing
	}
	return c.Paths.File + ": " + strings.Join(parts, ", ")
}

// Routed reports whether errand.yaml exists and lists repositories or limits runs or costs.
func (c Config) Routed() bool {
	b := c.Routing.Budgets
	return len(c.Routing.Repositories) > 0 || c.Routing.Limits != (Limits{}) ||
		b.Task+b.User+b.Channel+b.Repository+b.Day > 0
}
