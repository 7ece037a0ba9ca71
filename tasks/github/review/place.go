package review

// Limits says how much a review may say at lines.
type Limits struct {
	Max   int      // findings at lines; further ones are in the summary
	Floor Severity // the least grave that is told at all
}

// Place is the plan with each new finding where it can be: at a line of the diff, if the agent is sure enough of it and there are not
// too many, or else in the summary. It may be asked again with another diff.
func (p Plan) Place(d Diff, l Limits) Plan {
	var inline, summary []Finding
	for _, f := range p.Inline {
		if f.Severity.Compare(l.Floor) > 0 {
			p.Below++
			continue
		}
		at, ok := d.anchor(f)
		if !ok || f.Confidence == Low || len(inline) >= l.Max {
			summary = append(summary, f)
			continue
		}
		inline = append(inline, at)
	}
	for _, f := range p.Summary {
		if f.Severity.Compare(l.Floor) > 0 {
			p.Below++
			continue
		}
		summary = append(summary, f)
	}
	Gravest(summary)
	p.Inline, p.Summary = inline, summary
	return p
}

// Posted is a plan without anything at lines, in which those findings are back at theirs whose IDs were found there.
func (p Plan) Posted(told map[string]bool) Plan {
	all := p.Summary
	p.Summary = nil
	for _, f := range all {
		if told[f.ID] {
			p.Inline = append(p.Inline, f)
		} else {
			p.Summary = append(p.Summary, f)
		}
	}
	return p
}

// All are the new findings, wherever they are, the gravest first.
func (p Plan) All() []Finding {
	all := append(append([]Finding(nil), p.Inline...), p.Summary...)
	Gravest(all)
	return all
}
