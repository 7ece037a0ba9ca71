package agent

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// excerpt is the beginning of what a tool put out, as text: somewhat more than people are shown of it. The rest, which is most of what a run
// reads, is neither copied nor decoded.
type excerpt string

// excerptBytes of JSON are maxPreview characters at the least: one is never longer than two escapes of six bytes each.
const excerptBytes = 12 * maxPreview

// UnmarshalJSONFrom takes a string, or a list of blocks as in a message. What is neither has no text.
func (e *excerpt) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	switch v.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, v[:min(len(v), excerptBytes)]) // a string that ends too early is decoded so far
		*e = excerpt(text)
	case '[':
		var blocks []struct {
			Type string  `json:"type"`
			Text excerpt `json:"text"`
		}
		_ = json.Unmarshal(v, &blocks, lenient) // what is no block ends the list
		var parts []string
		for _, b := range blocks {
			if b.Type == "text" {
				parts = append(parts, string(b.Text))
			} else {
				parts = append(parts, "["+b.Type+"]")
			}
		}
		*e = excerpt(strings.Join(parts, "\n"))
	default:
		*e = ""
	}
	return err
}
