package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// answerMarkdown returns the answer of a run as Markdown: its text, or an outline of its structured output.
func answerMarkdown(e *tasks.Ending) string {
	if len(e.Result.Structured) == 0 {
		return e.Result.Text
	}
	text, err := outlineJSON(e.Result.Structured)
	if err != nil {
		return e.Result.Text
	}
	return text
}

// maxMargin is the deepest indentation of an outline, in columns.
const maxMargin = 24

var errTooDeep = errors.New("the JSON is nested too deeply")

// outlineJSON formats JSON as Markdown: a list item for each field, in the order of the JSON, and for each element of
// an array.
func outlineJSON(data json.RawMessage) (string, error) {
	o := outliner{in: json.NewDecoder(bytes.NewReader(data))}
	o.in.UseNumber()
	if err := o.value("", true); err != nil {
		return "", err
	}
	return o.out.String(), nil
}

// outliner reads JSON once and writes as it reads.
type outliner struct {
	in  *json.Decoder
	out strings.Builder
}

// value writes the next value. margin is the indentation of its item; first reports whether the item is still empty.
func (o *outliner) value(margin string, first bool) error {
	t, err := o.in.Token()
	if err != nil {
		return err
	}
	d, nested := t.(json.Delim)
	if !nested {
		o.scalar(t, margin)
		return nil
	}
	if len(margin) > maxMargin {
		return errTooDeep
	}
	for n := 1; o.in.More(); n++ {
		switch {
		case n > 1:
			o.out.WriteString("\n" + margin)
		case !first:
			o.out.WriteString("\n\n" + margin)
		}
		if err := o.item(d, n, margin); err != nil {
			return err
		}
	}
	_, err = o.in.Token() // the closing delimiter
	return err
}

// item writes a field of an object or an element of an array.
func (o *outliner) item(of json.Delim, n int, margin string) error {
	if of == '{' {
		name, err := o.in.Token()
		if err != nil {
			return err
		}
		fmt.Fprintf(&o.out, "- **%s:** ", name)
		return o.value(margin+"  ", false)
	}
	mark := fmt.Sprintf("%d. ", n)
	o.out.WriteString(mark)
	return o.value(margin+strings.Repeat(" ", len(mark)), true)
}

// scalar writes a value that is neither object nor array, its further lines indented like its first.
func (o *outliner) scalar(t json.Token, margin string) {
	if t == nil {
		t = "–"
	}
	o.out.WriteString(strings.ReplaceAll(strings.TrimSpace(fmt.Sprint(t)), "\n", "\n"+margin))
}

// formatInput formats the input of a tool: a line per argument. Input that is not a JSON object is returned as it is.
func formatInput(input json.RawMessage) string {
	if len(input) == 0 {
		return ""
	}
	in := json.NewDecoder(bytes.NewReader(input))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return legible.Text(string(input))
	}
	var lines []string
	for in.More() {
		name, err := in.Token()
		var value json.RawMessage
		if err == nil {
			err = in.Decode(&value)
		}
		if err != nil {
			return legible.Text(string(input))
		}
		text := string(value)
		if json.Unmarshal(value, &text) == nil && strings.ContainsRune(text, '\n') {
			text = "\n" + text
		}
		lines = append(lines, fmt.Sprint(name)+": "+text)
	}
	return legible.Text(strings.Join(lines, "\n"))
}
