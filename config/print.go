package config

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Print writes every variable as NAME=value, group by group, with secrets hidden and what was not set commented out with its
// default. What it writes is an env file again, for a shell as for Compose, once the secrets are put back.
func (c Config) Print(w io.Writer) error {
	out := bufio.NewWriter(w)
	group := ""
	for _, s := range c.settings() {
		if s.group != group {
			if group != "" {
				fmt.Fprintln(out)
			}
			group = s.group
			fmt.Fprintln(out, "#", group)
		}
		if slices.Contains(c.Given, s.name) {
			fmt.Fprintf(out, "%s=%s\n", s.name, quote(text(s.value)))
			continue
		}
		value := s.preset
		if value == "" { // a default that is found out, like that of ERRAND_CONCURRENCY
			value = text(s.value)
		}
		fmt.Fprintf(out, "# %s=%s\n", s.name, quote(value))
	}
	fmt.Fprintf(out, "\n# %s\n", c.Summary())
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}

// text writes a value the way Load reads it.
func text(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ":")
	case slog.Level:
		return strings.ToLower(v.String())
	case time.Duration:
		return shortDuration(v)
	case int, int64:
		if fmt.Sprint(v) == "0" {
			return ""
		}
	}
	return fmt.Sprint(value)
}

// shortDuration drops the zeros of 2h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var plain = regexp.MustCompile(`^[\w./:@%+,=\[\]-]*$`)

// quote protects what a shell or Compose would read otherwise. Both take single quotes literally; only a value that has one itself
// needs the double ones, in which both know the same four escapes.
func quote(s string) string {
	switch {
	case plain.MatchString(s):
		return s
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s) + `"`
}
