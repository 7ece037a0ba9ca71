package findings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/untrusted"
)

// Verdict is what a second look at a finding says: an agent in a new conversation has tried to refute it.
type Verdict string

// The verdicts.
const (
	Holds     Verdict = "holds"
	Refuted   Verdict = "refuted" // it is dropped
	Uncertain Verdict = "uncertain"
	Unchecked Verdict = "unchecked" // there was to be a second look, and none has said anything
)

// VerdictsSchema returns the JSON schema of the verdicts on some findings.
func VerdictsSchema() json.RawMessage { return json.RawMessage(verdictsSchema) }

const verdictsSchema = `{
  "type": "object",
  "additionalProperties": false,
  "required": ["verdicts"],
  "properties": {
    "verdicts": {
      "type": "array",
      "description": "One verdict on each finding.",
      "items": {
        "type": "object",
        "additionalProperties": false,
        "required": ["id", "reason", "verdict"],
        "properties": {
          "id": {"type": "string", "description": "The id of the finding."},
          "reason": {"type": "string", "description": "In one sentence: what in the code decides it."},
          "verdict": {"enum": ["holds", "refuted", "uncertain"]}
        }
      }
    }
  }
}`

// ToCheck returns the findings of an answer that deserve a second look: those above minor that would be posted as new,
// down to a floor.
func (l *Ledger) ToCheck(in Input, floor Severity) []Finding {
	news, _ := l.news(in)
	return slices.DeleteFunc(news, func(f Finding) bool { return !f.grave() || f.Severity.Compare(floor) > 0 })
}

// grave reports whether a finding deserves a second look if it is new.
func (f Finding) grave() bool { return f.Severity.Compare(Minor) < 0 }

// Unjudged returns the answer without verdicts, which its agent may not give. changed reports whether it had some.
func (a Answer) Unjudged() (_ Answer, changed bool) {
	a.Findings = slices.Clone(a.Findings)
	for i := range a.Findings {
		f := &a.Findings[i]
		changed = changed || f.Verdict != "" || f.Reason != ""
		f.Verdict, f.Reason = "", ""
	}
	return a, changed
}

// Unseen returns the answer without a second look, which those of its findings that deserve one say if they are posted.
func (a Answer) Unseen() Answer {
	a, _ = a.Unjudged()
	for i := range a.Findings {
		if f := &a.Findings[i]; f.grave() {
			f.Verdict = Unchecked
		}
	}
	return a
}

// Quote lists findings for the agent that looks at them again.
func Quote(list []Finding) string {
	var b strings.Builder
	for _, f := range list {
		place := untrusted.Line(f.Path, maxPath)
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
		if f.Side == Left {
			place += " (deleted)"
		}
		fmt.Fprintf(&b, "- id %s, %s, %s: %s\n", f.ID, f.Severity, place, untrusted.Plain(f.Claim))
		for _, more := range []string{f.Evidence, f.Original} {
			if more = untrusted.Plain(more); more != "" {
				b.WriteString("  " + strings.ReplaceAll(more, "\n", "\n  ") + "\n")
			}
		}
	}
	return untrusted.Quote("findings", b.String())
}

// Judged returns the answer with the verdicts of a second look at some of its findings. One of these without a verdict
// is unchecked. An error means that raw has no verdicts.
func (a Answer) Judged(raw json.RawMessage, asked []Finding) (Answer, error) {
	var said struct {
		Verdicts []struct {
			ID      string  `json:"id"`
			Reason  string  `json:"reason"`
			Verdict Verdict `json:"verdict"`
		} `json:"verdicts"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&said); err != nil {
		return a, fmt.Errorf("read verdicts: %w", err)
	}
	a, _ = a.Unjudged()
	judged := 0
	for i := range a.Findings {
		f := &a.Findings[i]
		if !slices.ContainsFunc(asked, func(q Finding) bool { return q.ID == f.ID }) {
			continue
		}
		for _, v := range said.Verdicts {
			known := v.Verdict == Holds || v.Verdict == Uncertain
			if why := untrusted.Plain(v.Reason); v.ID != f.ID || !known && (v.Verdict != Refuted || why == "") {
				continue
			}
			if f.Verdict != "" && f.Verdict != v.Verdict { // it contradicts itself
				v.Verdict = Uncertain
			}
			f.Verdict, f.Reason = v.Verdict, v.Reason
		}
		switch f.Verdict {
		case "":
			f.Verdict = Unchecked
			continue
		case Holds:
			f.Reason = "" // which nobody needs
		}
		judged++
	}
	if judged == 0 {
		return a, errors.New("read verdicts: there is none on a finding")
	}
	return a, nil
}

// Draft returns the findings of an answer as a plan that nothing is known of.
func (a Answer) Draft() (p Plan) {
	for _, f := range a.Findings {
		if f.Verdict == Refuted {
			p.Dropped = append(p.Dropped, f)
		} else {
			p.Inline = append(p.Inline, f)
		}
	}
	return p
}
