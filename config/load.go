package config

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/caarlos0/env/v11"
)

// readFunc reads a whole file: os.ReadFile, or a map in tests.
type readFunc func(name string) ([]byte, error)

// Load reads the configuration of a program in the given role. A variable that is empty counts as not set.
//
// The error is a Problems with everything that is wrong. The Config is then as complete as it could be made, with what was refused
// left at its default or empty: good enough for Print, not for work.
func Load(getenv func(string) string, role Role) (Config, error) {
	return load(getenv, os.ReadFile, role)
}

func load(getenv func(string) string, read readFunc, role Role) (Config, error) {
	var p Problems
	c := parse(&p, getenv)
	c.readFiles(&p, read)
	c.check(&p)
	c.checkRole(&p, role)
	if c.Worker.Concurrency == 0 {
		c.Worker.Concurrency = slots(memory(read))
	}
	return c, p.err()
}

// parse fills the fields that have an env tag.
func parse(p *Problems, getenv func(string) string) Config {
	var c Config
	values := map[string]string{}
	var given []string
	for _, s := range c.settings() {
		value := getenv(s.name)
		if value == "" {
			continue
		}
		given = append(given, s.name)
		// The library names the Go field in an error, which is not what people set: each variable is tried alone to know its own.
		one := env.Options{Environment: map[string]string{s.name: value}}
		if err := env.ParseWithOptions(new(Config), one); err != nil {
			what, remedy := explain(value, err)
			p.add(s.name, what, remedy)
			continue
		}
		values[s.name] = value
	}
	if err := env.ParseWithOptions(&c, env.Options{Environment: values}); err != nil {
		p.add("package config", err.Error(), "correct the default in its struct tag") // a bug of ours: no input leads here
	}
	c.Given = given
	return c
}

// explain says in plain words why a value does not fit its field. It is never asked about a secret: any string is a Secret.
func explain(value string, err error) (what, remedy string) {
	pe, ok := errors.AsType[env.ParseError](err)
	if !ok {
		return fmt.Sprintf("cannot be read (%v)", err), "correct it"
	}
	switch pe.Type {
	case reflect.TypeFor[time.Duration]():
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			return fmt.Sprintf("is %q, a number without a unit", value), fmt.Sprintf("write %ss for seconds or %sm for minutes", value, value)
		}
		return fmt.Sprintf("is %q, which is not a duration", value), "write it like 90s, 15m or 2h30m"
	case reflect.TypeFor[bool]():
		return fmt.Sprintf("is %q", value), "write true or false"
	case reflect.TypeFor[Networks]():
		return fmt.Sprintf("is %q, which is not a list of addresses", value), "write addresses or networks, like 192.0.2.7,198.51.100.0/24"
	case reflect.TypeFor[slog.Level]():
		return fmt.Sprintf("is %q, which is not a level", value), "write debug, info, warn or error"
	default: // int, int64
		return fmt.Sprintf("is %q, which is not a whole number", value), "write digits only, like 4"
	}
}
