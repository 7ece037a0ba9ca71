package config

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Setting is an environment variable as it may be shown, and as the API has it.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // in the form that Load reads; of a secret only [redacted]; empty: none
	Origin string `json:"from"`  // see below
	About  string `json:"about"` // the first sentence of Help

	Group   string `json:"-"` // such as "Slack: optional"
	Default string `json:"-"` // as text; empty: none, or a computed one
	Help    string `json:"-"` // sentences for operators
	Secret  bool   `json:"-"`
}

// Where the value of a setting is from.
const (
	fromEnvironment = "environment"
	fromDefault     = "default"
	computed        = "computed"
	notSet          = "not set"
)

// Given reports whether the environment has set it.
func (s Setting) Given() bool { return s.Origin == fromEnvironment }

// Settings returns all settings in force, without secrets.
func (c Config) Settings() []Setting {
	var all []Setting
	for _, s := range c.settings() {
		_, secret := s.value.(Secret)
		one := Setting{
			Group: s.title, Name: s.name, Default: s.preset, Help: s.help, About: firstSentence(s.help), Secret: secret,
			Value: text(s.value), Origin: fromDefault,
		}
		given := slices.Contains(c.Given, s.name)
		if s.field.IsZero() && !given {
			one.Value = s.preset
		}
		switch {
		case given:
			one.Origin = fromEnvironment
		case one.Value == "":
			one.Origin = notSet
		case one.Default == "":
			one.Origin = computed
		}
		all = append(all, one)
	}
	return all
}

// text formats a value the way Load reads it.
func text(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ":")
	case slog.Level:
		return strings.ToLower(v.String())
	case time.Duration:
		return shortDuration(v)
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

// Quote quotes a value for a shell and Compose. Both take single quotes literally. A value with a single quote gets
// double quotes, in which both know the same four escapes.
func Quote(s string) string {
	switch {
	case plain.MatchString(s):
		return s
	case !strings.Contains(s, "'"):
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s) + `"`
}

var sentenceEnd = regexp.MustCompile(`^(.+?\.) [A-Z0-9']`)

func firstSentence(text string) string {
	if m := sentenceEnd.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return text
}

// ByGroup returns all settings as Settings does, group by group.
func (c Config) ByGroup() (all [][]Setting) {
	for _, s := range c.Settings() {
		if n := len(all); n == 0 || all[n-1][0].Group != s.Group {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

const envHead = `# Settings of errand. Copy this file to .env, or let 'enqueue init' write it, and fill in what you need. Commented
# variables show their defaults. docs/settings.md has the same as tables.
#
# 'make run' reads .env with a shell and 'docker compose' with its own parser: write NAME=value without spaces around the
# equals sign, and use single quotes around a value with spaces or a $. 'worker -print-config' shows the settings in force.
#
# 'make demo' needs none of them.
`

// lineWidth is the width of comments in EnvFile, without the sign.
const lineWidth = 118

// EnvFile returns .env.example: every variable with its explanation and its default, commented out.
func EnvFile() string {
	var b strings.Builder
	b.WriteString(envHead)
	for _, group := range new(Config).ByGroup() {
		title := "---- " + group[0].Group + " "
		fmt.Fprintf(&b, "\n# %s%s\n", title, strings.Repeat("-", lineWidth-len(title)))
		for _, s := range group {
			fmt.Fprintf(&b, "\n%s# %s=%s\n", comment(s.Help), s.Name, Quote(s.Default))
		}
	}
	return b.String()
}

// comment breaks a text into lines with a sign.
func comment(text string) string {
	var b strings.Builder
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line+" "+word) > lineWidth {
			b.WriteString("# " + line + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	b.WriteString("# " + line + "\n")
	return b.String()
}
