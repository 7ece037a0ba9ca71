package gateway

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// fetches returns what in a question would make the model's API fetch an address, by which a run could send data to a
// host that it may not reach; empty: nothing. The CLI sends pictures and documents themselves, and fetches pages on its
// own (CLI 2.1.329).
func fetches(body []byte) string {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return fetchesIn(d, false)
}

// unreadable is a reason to refuse a question, too.
const unreadable = "JSON that the gateway cannot read"

// fetchesIn reads the next value. source says that it describes where a picture or a document is.
func fetchesIn(d *jsontext.Decoder, source bool) string {
	begin := d.PeekKind()
	if begin != '{' && begin != '[' {
		if d.SkipValue() != nil {
			return unreadable
		}
		return ""
	}
	_, err := d.ReadToken()
	for next := d.PeekKind(); err == nil && next != '}' && next != ']'; next = d.PeekKind() {
		name, kind, what := "", "", ""
		if begin == '{' {
			name, err = readString(d)
		}
		switch {
		case err != nil:
		case strings.HasPrefix(name, "input"): // of a tool, or its schema: these are not the API's
			err = d.SkipValue()
		case name == "type" && d.PeekKind() == '"':
			if kind, err = readString(d); source && kind == "url" {
				what = "a source of type url"
			} else if strings.HasPrefix(kind, "web_fetch_2") { // with a date; its results have other types
				what = "the tool " + kind
			}
		default:
			what = fetchesIn(d, name == "source" || source && begin == '[')
		}
		if what != "" {
			return what
		}
	}
	if err == nil {
		_, err = d.ReadToken() // the end of the object or array
	}
	if err != nil {
		return unreadable
	}
	return ""
}

func readString(d *jsontext.Decoder) (string, error) {
	token, err := d.ReadToken()
	if err != nil {
		return "", err
	}
	return token.String(), nil
}
