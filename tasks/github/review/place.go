package review

// Limits bounds the findings of a review.
type Limits struct {
	Max   int      // findings on lines; further ones are in the summary
	Floor Severity // the least serious that is shown at all
}

// Place puts each new finding where it can be shown: on a line of the diff, if the agent is sure enough and the limit
// is not reached, otherwise in the summary. It may be called again with another diff.
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

// Posted moves all new findings to the summary, except those whose IDs were found on lines.
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

// All returns the new findings of both lists, the most serious first.
func (p Plan) All() []Finding {
	all := append(append([]Finding(nil), p.Inline...), p.Summary...)
	Gravest(all)
	return all
}
