package config

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// readFunc is [os.ReadFile] or a test's replacement.
type readFunc func(name string) ([]byte, error)

// Load reads the configuration of a program in the given role. An empty variable counts as not set.
//
// The error is a [Problems] with every problem. The Config then has the refused values replaced by their defaults: it
// can be printed but not used.
func Load(getenv func(string) string, role Role) (Config, error) {
	return load(getenv, os.ReadFile, role)
}

func load(getenv func(string) string, read readFunc, role Role) (Config, error) {
	var p Problems
	c := parse(&p, getenv)
	former(&p, getenv)
	c.readFiles(&p, read, role)
	c.check(&p)
	c.checkRole(&p, role)
	if c.Worker.Concurrency == 0 {
		c.Worker.Concurrency = slots(memory(read))
	}
	if !slices.Contains(c.Given, "ERRAND_RUN_MEMORY_GB") {
		c.Worker.MemoryGB = runMemory(memory(read))
	}
	return c, p.err()
}

// parse fills the fields that have an env tag.
func parse(p *Problems, getenv func(string) string) Config {
	var c Config
	values := map[string]string{}
	var given []string
	for _, s := range c.settings() {
		value := strings.TrimSpace(getenv(s.name)) // a file of variables may have line ends of another system
		if value == "" {
			continue
		}
		given = append(given, s.name)
		if checkText(p, s.name, value); p.Has(s.name) && s.field.Kind() != reflect.String {
			continue
		}
		// The library's errors name the Go field, so parse each variable separately to know which one is wrong.
		one := env.Options{Environment: map[string]string{s.name: value}}
		if err := env.ParseWithOptions(new(Config), one); err != nil {
			what, remedy := explain(value, err)
			p.add(s.name, what, remedy)
			continue
		}
		values[s.name] = value
	}
	if err := env.ParseWithOptions(&c, env.Options{Environment: values}); err != nil {
		p.add("package config", err.Error(), "correct the default in its struct tag") // a bug: no input leads here
	}
	c.Given = given
	return c
}

// checkText refuses quotation marks that no shell has removed, except around keys, and the placeholder that
// -print-config prints.
func checkText(p *Problems, name, value string) {
	last := len(value) - 1
	if last > 0 && strings.ContainsAny(value[:1], `"'`) && value[0] == value[last] && !strings.Contains(value, "-----") {
		p.add(name, "is in quotation marks", "remove them: docker --env-file and kubectl make them a part of it")
	}
	if strings.Contains(value, redacted) {
		p.add(name, "contains the placeholder "+redacted, "replace it by the value")
	}
}

// explain describes a value that does not fit its field. It quotes the value, which cannot be a secret: every string is
// a valid Secret.
func explain(value string, err error) (what, remedy string) {
	pe, ok := errors.AsType[env.ParseError](err)
	if !ok {
		return fmt.Sprintf("cannot be read (%v)", err), "correct it"
	}
	switch pe.Type {
	case reflect.TypeFor[time.Duration]():
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			return fmt.Sprintf("must have a unit, like %ss or %sm", value, value), ""
		}
		return fmt.Sprintf("must be a duration like 90s, 15m or 2h30m, not %q", value), ""
	case reflect.TypeFor[bool]():
		return fmt.Sprintf("must be true or false, not %q", value), ""
	case reflect.TypeFor[Networks]():
		return fmt.Sprintf("must be addresses or networks like 192.0.2.7,198.51.100.0/24, not %q", value), ""
	case reflect.TypeFor[slog.Level]():
		return fmt.Sprintf("must be debug, info, warn or error, not %q", value), ""
	default: // int, int64
		return fmt.Sprintf("must be a whole number, not %q", value), ""
	}
}

// readFiles reads errand.yaml and keys, and makes paths absolute, because runs have another working
// directory.
func (c *Config) readFiles(p *Problems, read readFunc, role Role) {
	c.Paths.State = absolute(p, "ERRAND_STATE_DIR", c.Paths.State)
	if strings.ContainsRune(c.Worker.Claude, filepath.Separator) {
		c.Worker.Claude = absolute(p, "ERRAND_CLAUDE", c.Worker.Claude)
	}
	c.Redis.readFiles(p, read)
	c.readKeys(p, read, role)
	c.readRouting(p, read)
}

// readKeys reads the private keys that are in files.
func (c *Config) readKeys(p *Problems, read readFunc, role Role) {
	const app = "GITHUB_APP_PRIVATE_KEY"
	c.GitHub.AppKeyFile = readKey(p, read, app, &c.GitHub.AppKey)
	if key := c.GitHub.AppKey.Reveal(); key != "" && !isKey([]byte(key)) {
		p.add(app, "is not a private key in PEM form", "download the key again from the App's settings page")
		c.GitHub.AppKey = ""
	}
	if role.runs() {
		c.Commits.KeyFile = readKey(p, read, "ERRAND_SIGNING_KEY", &c.Commits.Key)
	}
}

// readFile returns the content of a file with a key or a certificate and makes its path absolute. It clears the path
// of a file that cannot be read.
func readFile(p *Problems, read readFunc, name string, path *string) string {
	file := *path
	*path = ""
	switch {
	case file == "":
		return ""
	case strings.ContainsAny(file, "\n") || strings.Contains(file, "-----"): // Print must not show the key
		p.add(name, "must be the path of a file, not its content",
			"save the content in a file that only errand can read")
		return ""
	}
	file = absolute(p, name, file)
	data, err := read(file)
	if err != nil {
		p.add(name, "cannot be read ("+reason(err)+")", "correct the path or the file's permissions")
		return ""
	}
	*path = file
	return string(data)
}

// isKey reports whether data is a private key in PEM.
func isKey(data []byte) bool {
	block, _ := pem.Decode(data)
	return block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY")
}

// readRouting loads errand.yaml. Only a file named by ERRAND_CONFIG must exist.
func (c *Config) readRouting(p *Problems, read readFunc) {
	const name = "ERRAND_CONFIG"
	file := c.Paths.File
	c.Paths.File = ""
	data, err := read(absolute(p, name, file))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !slices.Contains(c.Given, name):
		return
	case err != nil:
		remedy := "correct the path, or unset it to use errand.yaml in the working directory"
		if errors.Is(err, fs.ErrPermission) {
			remedy = "permit the user of this process to read it"
		}
		p.add(name, "is "+file+", which cannot be read ("+reason(err)+")", remedy)
		return
	}
	c.Paths.File = absolute(p, name, file)
	c.Routing, c.Document = parseRouting(p, c.Paths.File, data)
	if site, err := url.Parse(c.GitHub.URL); err == nil {
		for _, repo := range c.Routing.trimHost(site.Host) {
			p.add(c.Paths.File, "lists "+repo+" twice, with and without "+site.Host, "keep one of the two entries")
		}
	}
}

// keyLines returns a private key, also with escaped line ends, and each of its secret lines.
func keyLines(key Secret) []string {
	all := []string{key.Reveal(), strings.ReplaceAll(key.Reveal(), "\n", `\n`)}
	for line := range strings.Lines(key.Reveal()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// absolute returns the path absolute and clean.
func absolute(p *Problems, name, path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // the working directory was removed
		p.add(name, "cannot be made absolute ("+err.Error()+")", "write an absolute path")
		return path
	}
	return abs
}

// setting is one variable as declared by its struct tags, with its value.
type setting struct {
	title  string // of its group
	name   string // of the variable
	preset string // the default, as text
	check  string // the key of checks and, after a space, a bound
	help   string // explains it to operators, the most important thing in the first sentence
	value  any
	field  reflect.Value // of value, to normalize it
}

// settings lists every variable in the order of the fields. Print, the documents, Secrets and the checks use it, so
// that they cover new fields automatically.
func (c *Config) settings() []setting {
	var all []setting
	for group, fields := range reflect.ValueOf(c).Elem().Fields() {
		if fields.Kind() != reflect.Struct {
			continue
		}
		for field, value := range fields.Fields() {
			name, ok := field.Tag.Lookup("env")
			if !ok || name == "-" {
				continue
			}
			all = append(all, setting{
				title: group.Tag.Get("help"), name: name, preset: field.Tag.Get("envDefault"),
				check: field.Tag.Get("check"), help: field.Tag.Get("help"), value: value.Interface(), field: value,
			})
		}
	}
	return all
}

// Secrets returns every secret value, for the redactor of logs, records and posts. It includes a private key as a
// whole, line by line, and with escaped line ends, because leaks often contain only one of these forms.
func (c Config) Secrets() []string {
	all := slices.Concat(c.Redis.URL.secrets(), keyLines(c.GitHub.AppKey), keyLines(c.Redis.Key),
		keyLines(c.Commits.Key))
	all = append(all, c.FleetToken().Reveal())
	for _, headers := range []iter.Seq2[string, string]{
		c.Model.Pairs(), c.Traces.Pairs(),
	} {
		all = append(all, secretValues(headers)...)
	}
	for _, s := range c.settings() {
		if secret, ok := s.value.(Secret); ok {
			all = append(all, secret.Reveal())
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}

// redacted replaces a secret in everything that is printed.
const redacted = "[redacted]"

// Secret is a value that must not be shown. It is formatted, logged and marshalled as "[redacted]", or as empty if it
// is empty, to show what is not set. Only Reveal returns the value. A Secret is read from JSON or YAML like a string.
//
// Keep it in exported fields and out of map keys: fmt cannot call methods through an unexported field, and
// encoding/json calls no method of a string key. Both would show the value.
type Secret string

// Reveal returns the value itself. Check every call if a secret has leaked.
func (s Secret) Reveal() string { return string(s) }

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the value from code that asks for Go syntax.
func (s Secret) GoString() string { return fmt.Sprintf("config.Secret(%q)", s.String()) }

// Format hides the value from every verb of fmt, including unsuitable ones: for %d fmt itself would print the string.
func (s Secret) Format(f fmt.State, verb rune) { hide(f, verb, s.String(), s.GoString()) }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from JSON, YAML and other encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// hide writes the replacement of a secret: Go syntax for %#v, quoted for %q, plain for other verbs.
func hide(f fmt.State, verb rune, text, syntax string) {
	switch {
	case verb == 'v' && f.Flag('#'):
		text = syntax
	case verb == 'q':
		text = fmt.Sprintf("%q", text)
	}
	_, _ = io.WriteString(f, text)
}
