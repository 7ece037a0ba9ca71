package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// ToNeutral translates a tool call, such as that of an Event, from the CLI's names into names that belong to no program: Read with
// file_path is read with path, Edit's old_string is oldText. Only names change, of the tool and of its arguments, also in a list of
// edits; input that is no JSON object, and tools and arguments that have no other name, come back as they are.
//
// The way back is exact, apart from white space between the tokens. To that end a name that the CLI does not know, but that is neutral
// for another one, changes places with it.
func ToNeutral(name string, input json.RawMessage) (string, json.RawMessage) {
	return swapTool(name), catalog[name].translate(input)
}

// FromNeutral undoes ToNeutral.
func FromNeutral(name string, input json.RawMessage) (string, json.RawMessage) {
	name = swapTool(name)
	return name, catalog[name].translate(input)
}

// swapTool maps a tool's two names to each other.
func swapTool(name string) string {
	if t, ok := catalog[name]; ok {
		return t.neutral
	}
	for theirs, t := range catalog {
		if t.neutral == name {
			return theirs
		}
	}
	return name
}

// swap maps an argument's two names to each other.
func (t tool) swap(arg string) string {
	if neutral, ok := t.args[arg]; ok {
		return neutral
	}
	for theirs, neutral := range t.args {
		if neutral == arg {
			return theirs
		}
	}
	return arg
}

// translate swaps the names of arguments, in either direction.
func (t tool) translate(input json.RawMessage) json.RawMessage {
	if len(t.args) == 0 || len(input) == 0 {
		return input
	}
	exact := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true)}
	dec := jsontext.NewDecoder(bytes.NewReader(input), exact...)
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, exact...)
	if t.object(dec, enc) != nil {
		return input
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return input
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

var errShape = errors.New("not an object")

// object copies one, with its names swapped.
func (t tool) object(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	if dec.PeekKind() != '{' {
		return errShape
	}
	if err := pass(dec, enc); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if err := enc.WriteToken(jsontext.String(t.swap(name))); err != nil {
			return err
		}
		if name == t.list && dec.PeekKind() == '[' {
			err = t.objects(dec, enc)
		} else {
			err = whole(dec, enc)
		}
		if err != nil {
			return err
		}
	}
	return pass(dec, enc)
}

// objects copies a list, with the names in its objects swapped.
func (t tool) objects(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	if err := pass(dec, enc); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		copied := whole
		if dec.PeekKind() == '{' {
			copied = t.object
		}
		if err := copied(dec, enc); err != nil {
			return err
		}
	}
	return pass(dec, enc)
}

// pass copies one token.
func pass(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	return enc.WriteToken(token)
}

// whole copies a value, whatever it is.
func whole(dec *jsontext.Decoder, enc *jsontext.Encoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	return enc.WriteValue(v)
}
