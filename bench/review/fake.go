package main

import "github.com/errand-fleet/errand/internal/fake/modelfake"

// The fake model misses each fourth bug, and reports a wrong problem in each third pull request, of which the second
// look refutes each one but that in the first.

// script makes the model answer like that.
func script(model *modelfake.Server, pulls []pull) {
	answer := func(match string, input map[string]any) {
		model.Answer(match, modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "StructuredOutput", Input: input}}})
	}
	for i, p := range pulls {
		list := []map[string]any{}
		if p.bug != "" && i%4 != 3 {
			side := "RIGHT"
			if p.removed {
				side = "LEFT"
			}
			list = append(list, map[string]any{
				"id": "bug", "severity": "major", "confidence": "high", "path": p.path, "line": p.line, "side": side,
				"original": p.bug, "claim": "This line is the bug.", "evidence": "The corpus says so.",
			})
		}
		if i%3 == 0 {
			id := "noise"
			if i == 0 {
				id = "stubborn"
			}
			list = append(list, map[string]any{
				"id": id, "severity": "critical", "confidence": "medium", "path": "none.txt", "line": 0,
				"original": "", "claim": "There is a file too few.", "evidence": "A guess.",
			})
		}
		answer("Review pull request acme/"+p.name+"#", map[string]any{"summary": "Read it.", "findings": list})
	}
	answer("Try to refute", map[string]any{"verdicts": []map[string]any{
		{"id": "bug", "verdict": "holds", "reason": "It is so."},
		{"id": "noise", "verdict": "refuted", "reason": "The file is not needed."},
		{"id": "stubborn", "verdict": "uncertain", "reason": "Who knows."},
	}})
}

// expected is the score of that model.
func expected(pulls []pull) (before, after score) {
	for i, p := range pulls {
		switch {
		case p.bug == "":
		case i%4 == 3:
			before.missed, after.missed = before.missed+1, after.missed+1
		default:
			before.found, after.found = before.found+1, after.found+1
		}
		if i%3 == 0 {
			before.wrong++
		}
		if i == 0 {
			after.wrong++
		}
	}
	return before, after
}
