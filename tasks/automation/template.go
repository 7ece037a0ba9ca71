package automation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"text/template"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// maxPrompt bounds what a template makes of a payload, which it may repeat. Redis keeps that for a day: at a rate of 60
// an hour about 100 MB of it at most.
const maxPrompt = 64 << 10

var errTooLong = errors.New("the prompt is too long")

// functions replace those that would escape the marks of a quote, and those that refuse to compare a whole number with
// one that has a fraction: a field may be either.
var functions = template.FuncMap{
	"html": same, "js": same, "urlquery": same,
	"lt": func(a, b any) (bool, error) { n, err := order(a, b); return n < 0, err },
	"le": func(a, b any) (bool, error) { n, err := order(a, b); return n <= 0, err },
	"gt": func(a, b any) (bool, error) { n, err := order(a, b); return n > 0, err },
	"ge": func(a, b any) (bool, error) { n, err := order(a, b); return n >= 0, err },
}

// order compares two numbers or two texts.
func order(a, b any) (int, error) {
	x, y, number := reflect.ValueOf(a), reflect.ValueOf(b), reflect.TypeFor[float64]()
	switch {
	case (x.CanInt() || x.CanFloat()) && (y.CanInt() || y.CanFloat()):
		return cmp.Compare(x.Convert(number).Float(), y.Convert(number).Float()), nil
	case x.Kind() == reflect.String && y.Kind() == reflect.String:
		return strings.Compare(x.String(), y.String()), nil
	}
	return 0, errors.New("only two numbers or two texts have an order")
}

func same(v any) any { return v }

func parse(name, text string) (*template.Template, error) {
	return template.New(name).Funcs(functions).Parse(text)
}

// render makes the prompt from a JSON object. Every text of the payload that the template inserts is quoted, whichever
// way it does so.
func render(t *template.Template, body []byte) (string, error) {
	var decoded map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&decoded); err != nil {
		return "", fmt.Errorf("read JSON object: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) || decoded == nil {
		return "", errors.New("read JSON object: it is null, or there is something behind it")
	}
	var out bounded
	if err := t.Execute(&out, quoted(decoded)); err != nil {
		return "", fmt.Errorf("fill template: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}

// bounded refuses more than a prompt may have.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPrompt {
		return 0, errTooLong
	}
	return b.Builder.Write(p)
}

// fieldName matches the names of fields that a template sees. Others are left out, because a template that lists the
// names of an object inserts them without quotes.
var fieldName = regexp.MustCompile(`^[A-Za-z0-9_./:@-]{1,64}$`)

// quoted replaces what a template can print by values that print themselves as quoted material. Conditions and
// comparisons work as with the values themselves.
func quoted(v any) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
		return text(v) // larger than any number
	case []any:
		l := make(list, len(v))
		for i := range v {
			l[i] = quoted(v[i])
		}
		return l
	case map[string]any:
		o := object{}
		for name, value := range v {
			if fieldName.MatchString(name) {
				o[name] = quoted(value)
			}
		}
		return o
	}
	return v // true, false and null
}

type (
	text   string
	list   []any
	object map[string]any
)

// The methods of fmt.Formatter count for every verb.

func (t text) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, untrusted.Quote("payload", untrusted.Plain(string(t))))
}

func (l list) Format(f fmt.State, _ rune)   { writeJSON(f, l) }
func (o object) Format(f fmt.State, _ rune) { writeJSON(f, o) }

// writeJSON writes a value as one quoted text.
func writeJSON(w io.Writer, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		b = []byte("null") // decoded JSON can be encoded
	}
	_, _ = io.WriteString(w, untrusted.Quote("payload", untrusted.Plain(string(b))))
}
