package review

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// Bounds of an answer. What is longer is cut, for GitHub would refuse it and nobody would read it; in the schema they would only make
// the agent try again until it gives up.
const (
	maxAnswer     = 512 << 10 // bytes, as does the number of findings: beyond it the answer is not taken
	maxFindings   = 100
	maxClaim      = 300 // characters, as are those below
	maxEvidence   = 2000
	maxSuggestion = 2000
	maxSummary    = 4000
	maxPath       = 500
)

// Schema is the form of an answer, as JSON schema.
func Schema() json.RawMessage { return json.RawMessage(schema) }

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["findings", "summary"],
  "properties": {
    "summary": {"type": "string", "description": "The result of the review in one to three sentences. Do not repeat the findings."},
    "findings": {
      "type": "array",
      "description": "What is wrong with the change, the gravest first. Empty if there is nothing to report.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["id", "severity", "confidence", "path", "line", "claim", "evidence"],
        "properties": {
          "id": {"type": "string", "description": "A short name, unique among your findings: lower case letters, digits and dashes."},
          "severity": {"enum": ["critical", "major", "minor"]},
          "confidence": {"enum": ["high", "medium", "low"]},
          "path": {"type": "string", "description": "The file, from the root of the repository. Empty if it is about the change as a whole."},
          "line": {"type": "integer", "description": "The line in question, the last one of several, counted from 1. 0 if it is about the whole file."},
          "start_line": {"type": "integer", "description": "The first one of several lines. Leave it out for a single line."},
          "side": {"enum": ["RIGHT", "LEFT"], "description": "RIGHT: the number is a line's in the new version; that is the rule. LEFT: of a line that is gone, in the old version."},
          "claim": {"type": "string", "description": "What is wrong, in one sentence."},
          "evidence": {"type": "string", "description": "What happens and when, and how you know, in a few sentences."},
          "original": {"type": "string", "description": "With a suggestion: the lines start_line to line as they are now, word for word."},
          "suggestion": {"type": "string", "description": "At most five lines to write in the place of exactly the lines start_line to line, with their indentation and without a fence. Only if that mends it."}
        }
      }
    },
    "earlier": {
      "type": "array",
      "description": "What has become of each finding of an earlier review that you were asked about.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["id", "status"],
        "properties": {
          "id": {"type": "string"},
          "status": {"enum": ["open", "fixed", "outdated"], "description": "outdated: what it was about is gone."}
        }
      }
    }
  }
}`

// Read takes an answer of that form. What GitHub could not take is cut or left out; an answer of another form is refused whole.
func Read(raw json.RawMessage) (Answer, error) {
	var a Answer
	if len(raw) > maxAnswer {
		return a, fmt.Errorf("read answer: it has %d bytes", len(raw))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Answer{}, errors.New("read answer: something follows it")
	}
	if len(a.Findings) > maxFindings || len(a.Earlier) > maxFindings {
		return Answer{}, fmt.Errorf("read answer: it has %d findings and %d earlier ones", len(a.Findings), len(a.Earlier))
	}
	seen := map[string]bool{}
	for i := range a.Findings {
		f := &a.Findings[i]
		if err := f.tidy(); err != nil {
			return Answer{}, fmt.Errorf("read finding %d: %w", i+1, err)
		}
		if !nameForm.MatchString(f.ID) || seen[f.ID] {
			f.ID = fmt.Sprintf("finding-%d", i+1)
		}
		seen[f.ID] = true
	}
	for i, c := range a.Earlier {
		if c.Status != Open && c.Status != Fixed && c.Status != Outdated {
			return Answer{}, fmt.Errorf("read earlier finding %d: %q is no status of one", i+1, c.Status)
		}
	}
	a.Summary = plain(cut(strings.TrimSpace(a.Summary), maxSummary))
	return a, nil
}

// nameForm is what a finding's ID looks like.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// What an agent's prose must not do: only Comment makes blocks of which GitHub makes a button, and nothing folds away what stands below.
var (
	suggested = regexp.MustCompile("(?i)([`~]{3,})[ \\t]*suggestion")
	disguised = regexp.MustCompile("([`~]{3,})[ \\t]*([^\\s`~]*&)") // the same word, written in entities
	folds     = regexp.MustCompile(`(?i)<(\s*/?\s*(?:pre|details|summary))\b`)
)

// plain is prose without such effects.
func plain(s string) string {
	s = disguised.ReplaceAllString(suggested.ReplaceAllString(s, "$1"), "${1}text $2")
	return folds.ReplaceAllString(s, "&lt;$1")
}

// tidy brings a finding into bounds.
func (f *Finding) tidy() error {
	f.Claim = plain(oneLine(f.Claim, maxClaim))
	switch {
	case !f.Severity.Known():
		return fmt.Errorf("%q is no severity", f.Severity)
	case f.Confidence != High && f.Confidence != Medium && f.Confidence != Low:
		return fmt.Errorf("%q is no confidence", f.Confidence)
	case f.Side != "" && f.Side != Right && f.Side != Left:
		return fmt.Errorf("%q is no side of a diff", f.Side)
	case f.Claim == "":
		return errors.New("it claims nothing")
	}
	if f.Side == "" {
		f.Side = Right
	}
	f.Path = strings.TrimPrefix(strings.TrimSpace(f.Path), "./")
	if len(f.Path) > maxPath || strings.ContainsFunc(f.Path, unicode.IsControl) {
		f.Path = ""
	}
	if f.Path == "" || f.Line <= 0 {
		f.Line = 0
	}
	if f.StartLine <= 0 || f.StartLine >= f.Line {
		f.StartLine = 0
	}
	f.Evidence = plain(cut(strings.TrimSpace(f.Evidence), maxEvidence))
	f.Suggestion, f.Original = trimLines(f.Suggestion), trimLines(f.Original)
	if len(f.Suggestion) > maxSuggestion || strings.TrimSpace(f.Suggestion) == "" {
		f.Suggestion = ""
	}
	return nil
}

// trimLines is text of whole lines without the break after the last one. A lone carriage return ends a line of Markdown, too.
func trimLines(s string) string {
	return strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\n")
}

// oneLine is text in one line of at most n characters.
func oneLine(s string, n int) string { return cut(strings.Join(strings.Fields(s), " "), n) }

// cut keeps the first n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
