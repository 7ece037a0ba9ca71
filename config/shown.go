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

// Section is a section of errand.yaml as a table. A cell is empty if the key is not set.
type Section struct {
	Key     string
	Columns []string
	Rows    [][]string
}

// Sections returns what errand.yaml sets, without secrets and what may hold one: their fields have the tag hidden.
func (r Routing) Sections() (all []Section) {
	for _, f := range keysOf(reflect.TypeOf(r)) {
		entries := entriesOf(reflect.ValueOf(r).FieldByIndex(f.Index), "")
		s := Section{Key: f.Tag.Get("yaml")}
		if f.Type.Kind() == reflect.Struct {
			s.Columns = []string{"key", "value"}
			s.Rows = slices.DeleteFunc(entries[0].cells, func(cell []string) bool { return cell[1] == "" })
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
	cells [][]string // key and value
}

// entriesOf returns the entries of a mapping in the order of their names, and those of a list by their positions.
func entriesOf(v reflect.Value, name string) (all []entry) {
	switch v.Kind() {
	case reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			all = append(all, entriesOf(v.MapIndex(key), strings.TrimSpace(name+" "+key.String()))...)
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, entriesOf(v.Index(i), strconv.Itoa(i+1))...)
		}
	default:
		return []entry{{name, cellsOf(v, "")}}
	}
	return all
}

// columns returns a table of entries with a column for each key that one of them sets.
func columns(entries []entry) (names []string, rows [][]string) {
	names = []string{"entry"}
	for _, e := range entries {
		rows = append(rows, []string{e.name})
	}
	for i, cell := range entries[0].cells {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.cells[i][1] != "" }) {
			continue
		}
		names = append(names, cell[0])
		for n, e := range entries {
			rows[n] = append(rows[n], e.cells[i][1])
		}
	}
	return names, rows
}

// cellsOf returns the keys below a value with their texts.
func cellsOf(v reflect.Value, path string) (cells [][]string) {
	if v.Type() == reflect.TypeFor[hostlist.List]() {
		return [][]string{{"hosts", shownText(v)}}
	}
	for _, f := range keysOf(v.Type()) {
		value, key := v.FieldByIndex(f.Index), path+f.Tag.Get("yaml")
		if len(keysOf(f.Type)) > 0 {
			cells = append(cells, cellsOf(value, key+".")...)
			continue
		}
		text := shownText(value)
		switch hidden := f.Tag.Get("hidden"); {
		case text == "" || hidden == "":
		case hidden == "host":
			u, _ := url.Parse(text) // nil has no host
			text = cmp.Or(u, &url.URL{}).Hostname()
		default:
			text = "set, hidden"
		}
		cells = append(cells, []string{key, text})
	}
	return cells
}

// maxShown bounds the text of a value, in characters.
const maxShown = 200

// shownText returns a value as text; empty if it is not set.
func shownText(v reflect.Value) string {
	text := ""
	switch value := v.Interface().(type) {
	case hostlist.List:
		text = strings.Join(slices.Concat(value.Hosts, value.Private), ", ")
		if value.Mode != hostlist.Listed {
			text = strings.TrimSpace(string(value.Mode) + " " + text)
		}
	case []string:
		text = strings.Join(value, ", ")
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
