package config

import (
	"reflect"
	"slices"
)

// setting is one variable as the struct tags declare it, with the value it has.
type setting struct {
	group  string // the field of Config it is in
	name   string // of the variable
	preset string // the default, as one would write it
	value  any
}

// settings lists every variable in the order of the fields. Print, Secrets and the checks all go by it, so that a field added
// to a group is covered by each of them from the start.
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
			all = append(all, setting{group.Name, name, field.Tag.Get("envDefault"), value.Interface()})
		}
	}
	return all
}

// Secrets lists every secret value, for the redactor that stands before each log, record and post. A private key is there whole and
// line by line, because what leaks is often one line of it, or all of it with the line ends escaped.
func (c Config) Secrets() []string {
	all := append(c.Redis.URL.secrets(), keyLines(c.GitHub.AppKey)...)
	all = append(all, c.FleetToken().Reveal())
	for _, s := range c.settings() {
		if secret, ok := s.value.(Secret); ok {
			all = append(all, secret.Reveal())
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}
