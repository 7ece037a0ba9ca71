package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/internal/hostlist"
)

// Shown is the configuration in force as people may see it: without secrets. The API sends it.
type Shown struct {
	Groups []Group   `json:"groups"` // of environment variables
	File   string    `json:"file"`   // the path of errand.yaml; empty: none
	Tables []Section `json:"tables"` // the content of errand.yaml

	Digest string `json:"-"` // see [Config.Digest]
}

// Group is the settings of one subject.
type Group struct {
	Title    string    `json:"title"`
	Settings []Setting `json:"settings"`
}

// Given returns the settings that the environment sets, or the others.
func (g Group) Given(given bool) []Setting {
	return slices.DeleteFunc(slices.Clone(g.Settings), func(s Setting) bool { return s.Given() != given })
}

// Section is a section of errand.yaml as a table. A cell is empty if the key is not set, or has no default.
type Section struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

const hiddenSecret = "set, hidden"

// Shown returns what people may see of a configuration.
func (c Config) Shown() *Shown {
	shown := &Shown{File: c.Paths.File, Digest: c.Digest(), Tables: c.Routing.Sections()}
	for _, settings := range c.ByGroup() {
		for i, s := range settings {
			if s.Secret && s.Value != "" {
				settings[i].Value = hiddenSecret
			}
		}
		shown.Groups = append(shown.Groups, Group{settings[0].Group, settings})
	}
	return shown
}

// Sections returns what errand.yaml sets, and the defaults of other keys. Secrets, and what may hold one, are left out:
// their fields have the tag hidden.
func (r Routing) Sections() []Section {
	all := []Section{}
	for _, f := range keysOf(reflect.TypeOf(r)) {
		value := reflect.ValueOf(r).FieldByIndex(f.Index)
		entries := entriesOf(value, "", f.Tag.Get("default"))
		s := Section{Title: f.Tag.Get("yaml")}
		if f.Type.Kind() == reflect.String {
			s.Columns = []string{"value"}
			if !value.IsZero() {
				s.Rows = [][]string{{shownText(value)}}
			}
		} else if f.Type.Kind() == reflect.Struct {
			s.Columns = []string{"key", "value", "default"}
			s.Rows = slices.DeleteFunc(entries[0].cells, func(cell []string) bool { return cell[1]+cell[2] == "" })
		} else if len(entries) > 0 {
			s.Columns, s.Rows = columns(entries)
		}
		if len(s.Rows) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// entry is one of the entries of a section, such as a repository.
type entry struct {
	name  string
	cells [][]string // key, value and default
}

// entriesOf returns the entries of a mapping in the order of their names, and those of a list by their positions.
func entriesOf(v reflect.Value, name, preset string) (all []entry) {
	switch v.Kind() {
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			all = append(all, entriesOf(v.MapIndex(key), strings.TrimSpace(name+" "+key.String()), "")...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, entriesOf(v.Index(i), strconv.Itoa(i+1), "")...)
		}
	default:
		return []entry{{name, cellsOf(v, "", preset)}}
	}
	return all
}

// columns returns a table of entries and their defaults, with a column for each key that has a value or a default.
func columns(entries []entry) (names []string, rows [][]string) {
	names = []string{"entry"}
	defaults := []string{"by default"}
	for _, e := range entries {
		rows = append(rows, []string{e.name})
	}
	for i, cell := range entries[0].cells {
		if cell[2] == "" && !slices.ContainsFunc(entries, func(e entry) bool { return e.cells[i][1] != "" }) {
			continue
		}
		names, defaults = append(names, cell[0]), append(defaults, cell[2])
		for n, e := range entries {
			rows[n] = append(rows[n], e.cells[i][1])
		}
	}
	if strings.Join(defaults[1:], "") != "" {
		rows = slices.Insert(rows, 0, defaults)
	}
	return names, rows
}

// cellsOf returns the keys below a value with their texts and defaults. preset is the default of the value itself.
func cellsOf(v reflect.Value, path, preset string) (cells [][]string) {
	if list, ok := reflect.TypeAssert[hostlist.List](v); ok {
		allow := shownText(reflect.ValueOf(list.Hosts))
		if list.Mode != hostlist.Listed {
			allow = string(list.Mode)
		} else if allow == "" {
			allow = string(hostlist.None)
		}
		return [][]string{
			{path + "allow", allow, preset},
			{path + "private", shownText(reflect.ValueOf(list.Private)), ""},
		}
	}
	for _, f := range keysOf(v.Type()) {
		value, key, preset := v.FieldByIndex(f.Index), path+f.Tag.Get("yaml"), f.Tag.Get("default")
		if f.Type.Kind() == reflect.Struct {
			cells = append(cells, cellsOf(value, key+".", preset)...)
			continue
		}
		text := shownText(value)
		switch hidden := f.Tag.Get("hidden"); {
		case text == "" || hidden == "":
		case hidden == "host":
			u, _ := url.Parse(text) // nil has no host
			text = cmp.Or(u, &url.URL{}).Hostname()
		default:
			text = hiddenSecret
		}
		cells = append(cells, []string{key, text, preset})
	}
	return cells
}

// maxShown bounds the text of a value, in characters.
const maxShown = 200

// shownText returns a value as text; empty if it is not set.
func shownText(v reflect.Value) string {
	if texts := reflect.TypeFor[[]string](); v.CanConvert(texts) {
		v = v.Convert(texts)
	}
	text := ""
	switch value := v.Interface().(type) {
	case []string:
		text = shownList(value)
	case map[string]string:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			pairs = append(pairs, name+": "+value[name])
		}
		text = strings.Join(pairs, ", ")
	case *float64:
		if value != nil {
			text = fmt.Sprint(*value)
		}
	case map[string]RepositorySecret:
		text = strings.Join(slices.Sorted(maps.Keys(value)), ", ")
	default:
		if !v.IsZero() {
			text = fmt.Sprint(value)
		}
	}
	if runes := []rune(text); len(runes) > maxShown {
		text = string(runes[:maxShown]) + "…"
	}
	return text
}

// shownList joins texts, of which those that have a comma themselves are quoted.
func shownList(list []string) string {
	shown := slices.Clone(list)
	for i, text := range shown {
		if strings.Contains(text, ",") {
			shown[i] = strconv.Quote(text)
		}
	}
	return strings.Join(shown, ", ")
}
