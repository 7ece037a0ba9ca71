// Package findings holds the parts of a pull request review that need no network: the findings, their places in the
// diff and their wording. The ledger remembers earlier findings and turns an Answer into a Plan, which package review
// posts.
//
// It promises:
//   - Read accepts an answer only as a whole and within bounds, so GitHub does not refuse text that a model made up.
//   - A finding is put on a line only if that line is inside a hunk of the given diff and has the text that the finding
//     quotes. All other findings go into the summary, so none is lost.
//   - A suggestion is offered as such only if it replaces exactly the lines of its finding.
//   - A Ledger is bounded, and settles a task once: the same task gets the same Plan in every process. A plan does not
//     list as new any finding that is posted and still open, or that people have settled.
//   - A finding's text cannot reach beyond its own item, even if the agent left Markdown open in it.
//
// It does not make the agent's words harmless; the source does so before it passes them in.
//
// Only a Ledger has state, and only one goroutine may use it at a time. Everything else may be called from any
// goroutine.
package findings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// Bounds of an answer. Longer text is cut: GitHub would refuse it. The schema does not state the bounds, because then
// the agent would try again until it gives up.
const (
	maxAnswer     = 512 << 10 // bytes; an answer with more bytes, or with too many findings, is refused
	maxFindings   = 100
	maxClaim      = 300 // characters, like the following
	maxEvidence   = 2000
	maxSuggestion = 2000
	maxOriginal   = 20_000 // bytes
	maxSummary    = 4000
	maxPath       = 500
)

// Schema returns the JSON schema of an answer.
func Schema() json.RawMessage { return json.RawMessage(schema) }

const schema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["findings", "summary"],
  "properties": {
    "summary": {"type": "string", "description": "The result of the review in one to three sentences. Do not repeat the findings."},
    "findings": {
      "type": "array",
      "description": "The problems with the change, the most serious first. Empty if there is nothing to report.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["id", "severity", "confidence", "path", "line", "original", "claim", "evidence"],
        "properties": {
          "id": {"type": "string", "description": "A short name, unique among your findings: lowercase letters, digits and dashes."},
          "severity": {"enum": ["critical", "major", "minor"]},
          "confidence": {"enum": ["high", "medium", "low"]},
          "kind": {"enum": ["correctness", "security", "data-loss", "concurrency", "error-handling", "performance", "interface", "tests", "maintainability", "other"]},
          "path": {"type": "string", "description": "The file, relative to the root of the repository. Empty if the finding concerns the change as a whole."},
          "line": {"type": "integer", "description": "The line, counted from 1; the last one of a range. 0 if the finding concerns the whole file."},
          "start_line": {"type": "integer", "description": "The first line of a range. Omit it for a single line."},
          "side": {"enum": ["RIGHT", "LEFT"], "description": "RIGHT (the usual case): a line of the new version. LEFT: a deleted line, numbered in the old version."},
          "original": {"type": "string", "description": "The lines start_line to line as they are now, verbatim, without the sign of a diff. Of a long range its last lines suffice. A finding whose line has another text is not posted there."},
          "claim": {"type": "string", "description": "The problem, in one sentence."},
          "evidence": {"type": "string", "description": "The effect, when it occurs and how you know, in a few sentences."},
          "suggestion": {"type": "string", "description": "At most five lines that replace exactly the lines start_line to line, with their indentation and without a code fence. Only if that fixes the problem."}
        }
      }
    },
    "earlier": {
      "type": "array",
      "description": "The status of each finding of an earlier review that you were asked to check.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["id", "status"],
        "properties": {
          "id": {"type": "string"},
          "status": {"enum": ["open", "fixed", "outdated"], "description": "outdated: the code that the finding was about is gone."}
        }
      }
    }
  }
}`

// Read decodes an answer. It cuts or leaves out what GitHub would refuse, and refuses an answer that does not match the
// schema.
func Read(raw json.RawMessage) (Answer, error) {
	var a Answer
	if len(raw) > maxAnswer {
		return a, fmt.Errorf("read answer: %d bytes are too many", len(raw))
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Answer{}, errors.New("read answer: trailing data")
	}
	if len(a.Findings) > maxFindings || len(a.Earlier) > maxFindings {
		return Answer{}, fmt.Errorf("read answer: %d findings and %d earlier ones are too many", len(a.Findings),
			len(a.Earlier))
	}
	seen := map[string]bool{}
	for i := range a.Findings {
		f := &a.Findings[i]
		if err := f.tidy(); err != nil {
			return Answer{}, fmt.Errorf("read finding %d: %w", i+1, err)
		}
		for n := i + 1; !nameForm.MatchString(f.ID) || seen[f.ID]; n += maxFindings {
			f.ID = fmt.Sprintf("finding-%d", n)
		}
		seen[f.ID] = true
	}
	for i, c := range a.Earlier {
		if c.Status != Open && c.Status != Fixed && c.Status != Outdated {
			return Answer{}, fmt.Errorf("read earlier finding %d: unknown status %q", i+1, c.Status)
		}
	}
	a.Summary = plain(untrusted.Cut(strings.TrimSpace(a.Summary), maxSummary))
	return a, nil
}

// nameForm matches the ID of a finding.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// The agent's prose must not contain suggestion blocks, which GitHub turns into a button (only Comment makes them), nor
// tags that fold the text below them away.
var (
	suggested = regexp.MustCompile("(?i)([`~]{3,})[ \\t]*suggestion")
	disguised = regexp.MustCompile("([`~]{3,})[ \\t]*([^\\s`~]*&)") // the same word, written in entities
	folds     = regexp.MustCompile(`(?i)<(\s*/?\s*(?:pre|details|summary))\b`)
)

// plain removes such effects from prose.
func plain(s string) string {
	s = disguised.ReplaceAllString(suggested.ReplaceAllString(s, "$1"), "${1}text $2")
	return folds.ReplaceAllString(s, "&lt;$1")
}

// tidy brings a finding into bounds.
func (f *Finding) tidy() error {
	f.Claim = plain(untrusted.Short(f.Claim, maxClaim))
	switch {
	case !f.Severity.Known():
		return fmt.Errorf("unknown severity %q", f.Severity)
	case f.Confidence != High && f.Confidence != Medium && f.Confidence != Low:
		return fmt.Errorf("unknown confidence %q", f.Confidence)
	case f.Side != "" && f.Side != Right && f.Side != Left:
		return fmt.Errorf("unknown side %q of a diff", f.Side)
	case f.Claim == "":
		return errors.New("the claim is empty")
	}
	if !slices.Contains(kinds, f.Kind) {
		f.Kind = ""
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
	f.Evidence = plain(untrusted.Cut(strings.TrimSpace(f.Evidence), maxEvidence))
	f.checked()
	f.Suggestion, f.Original = trimLines(f.Suggestion), lastOf(trimLines(f.Original))
	if len(f.Suggestion) > maxSuggestion || strings.TrimSpace(f.Suggestion) == "" {
		f.Suggestion = ""
	}
	return nil
}

// checked brings the verdict of a finding into bounds. Nothing is dropped without a reason that can be seen.
func (f *Finding) checked() {
	known := slices.Contains([]Verdict{Holds, Refuted, Uncertain, Unchecked}, f.Verdict)
	if f.Reason = plain(untrusted.Line(f.Reason, maxClaim)); !known || f.Verdict == Refuted && f.Reason == "" {
		f.Verdict, f.Reason = "", ""
	}
}

// lastOf returns the last lines of a quote, as many as a finding may span. A line that is too long is cut.
func lastOf(quote string) string {
	lines := strings.Split(quote, "\n")
	lines = lines[max(0, len(lines)-maxRange):]
	size := len(strings.Join(lines, "\n"))
	for ; size > maxOriginal && len(lines) > 1; lines = lines[1:] {
		size -= len(lines[0]) + 1
	}
	if size > maxOriginal {
		return strings.ToValidUTF8(lines[0][:maxOriginal], "")
	}
	return strings.Join(lines, "\n")
}

// trimLines removes the last line break. A single carriage return also ends a line of Markdown.
func trimLines(s string) string {
	return strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\n")
}
