package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// answerOf is what a run has answered, as Markdown: its words, or an outline of the form that it was to fill in.
func answerOf(e *tasks.Ending) string {
	if len(e.Result.Structured) == 0 {
		return e.Result.Text
	}
	text, err := outlined(e.Result.Structured)
	if err != nil {
		return e.Result.Text
	}
	return text
}

// maxMargin is how deep an outline goes, in columns; forms are flat, and what is deeper is no form of ours.
const maxMargin = 24

var errTooDeep = errors.New("the form is nested too deeply")

// outlined writes a form as Markdown: an entry of a list for each field, in its order, and for each of a list in it.
func outlined(form json.RawMessage) (string, error) {
	o := outliner{in: json.NewDecoder(bytes.NewReader(form))}
	o.in.UseNumber()
	if err := o.value("", true); err != nil {
		return "", err
	}
	return o.out.String(), nil
}

// outliner reads a form once, and writes as it goes.
type outliner struct {
	in  *json.Decoder
	out strings.Builder
}

// value writes what comes next. The margin is that of the entry it belongs to; bare tells that nothing stands there yet.
func (o *outliner) value(margin string, bare bool) error {
	t, err := o.in.Token()
	if err != nil {
		return err
	}
	d, nested := t.(json.Delim)
	if !nested {
		o.words(t, margin)
		return nil
	}
	if len(margin) > maxMargin {
		return errTooDeep
	}
	for n := 1; o.in.More(); n++ {
		switch {
		case n > 1:
			o.out.WriteString("\n" + margin)
		case !bare:
			o.out.WriteString("\n\n" + margin)
		}
		if err := o.entry(d, n, margin); err != nil {
			return err
		}
	}
	_, err = o.in.Token() // its end
	return err
}

// entry writes a field of an object, or one of a list.
func (o *outliner) entry(of json.Delim, n int, margin string) error {
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

// words writes what is no object and no list. Its further lines stand where its entry's first does.
func (o *outliner) words(t json.Token, margin string) {
	if t == nil {
		t = "–"
	}
	o.out.WriteString(strings.ReplaceAll(strings.TrimSpace(fmt.Sprint(t)), "\n", "\n"+margin))
}
