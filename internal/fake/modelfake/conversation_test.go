package modelfake_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The messages have the shape of the CLI's, with the texts shortened.
func TestPromptAndTurn(t *testing.T) {
	t.Parallel()
	const (
		reminder = `{"type":"text","text":"<system-reminder>\nBe kind.\n</system-reminder>\n"}`
		env      = `{"role":"system","content":"# Environment"}`
		first    = `{"role":"user","content":[` + reminder + `,{"type":"text","text":"one"}]},` + env
		tool     = `{"role":"assistant","content":[{"type":"text","text":"two"},{"type":"tool_use","id":"t","name":"Bash","input":{}}]}`
		result   = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"three"},` +
			reminder + `]}`
		answer = `{"role":"assistant","content":"two"}`
	)
	type want struct {
		Text          string
		Prompts, Turn int
	}
	for name, c := range map[string]struct {
		messages string
		want     want
	}{
		"plain string":    {`{"role":"user","content":"one"}`, want{"one", 1, 0}},
		"first request":   {first, want{"one", 1, 0}},
		"after a tool":    {first + "," + tool + "," + result, want{"one", 1, 1}},
		"after two tools": {first + "," + tool + "," + result + "," + tool + "," + result, want{"one", 1, 2}},
		"second prompt": {
			first + "," + tool + "," + result + "," + answer + `,{"role":"user","content":"four"}`, want{"four", 2, 0},
		},
		"several blocks": {
			`{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"more"}]}`,
			want{"one\nmore", 1, 0},
		},
		"unanswered before":  {`{"role":"user","content":[{"type":"text","text":"one\n"},{"type":"text","text":"four"}]}`, want{"four", 2, 0}},
		"interrupted before": {`{"role":"user","content":[{"type":"text","text":"one\n"},{"type":"text","text":"[Request interrupted by user]\n"},{"type":"text","text":"four"}]}`, want{"four", 2, 0}},
		"interrupted": {first + "," + answer +
			`,{"role":"user","content":"[Request interrupted by user for tool use]"}`, want{"one", 1, 1}},
		"refused": {
			first + "," + answer +
				`,{"role":"user","content":"Your response above was stopped by a safety classifier — no"}`,
			want{"one", 1, 1},
		},
		"out of tokens": {first + "," + answer +
			`,{"role":"user","content":"Output token limit hit. Resume directly — go"}`, want{"one", 1, 1}},
		"empty answer": {`{"role":"user","content":[{"type":"text","text":"one\n"},{"type":"text","text":"[Your previous response had no visible output. Go on.]"}]}`, want{"one", 1, 0}},
		"not structured": {first + "," + answer +
			`,{"role":"user","content":"[structured-output-enforce] You MUST"}`, want{"one", 1, 1}},
		"image": {`{"role":"user","content":[{"type":"image"},{"type":"text","text":"one\n"},{"type":"text","text":"[Image: source: /i.png]"}]}`, want{"one", 1, 0}},
		"background task": {
			first + "," + answer + `,{"role":"user","content":[` + reminder + `]}`, want{"one", 1, 1},
		},
		"quotes a reminder": {
			`{"role":"user","content":"<system-reminder>x</system-reminder> one"}`,
			want{"<system-reminder>x</system-reminder> one", 1, 0},
		},
		"said while it works": {
			first + "," + tool + "," + result + "," + midTurn("four") + "," + tool + "," + result, want{"four", 2, 1},
		},
		"said while it works, as the system": {
			first + "," + tool + "," + result + "," +
				`{"role":"system","content":"The user sent a new message while you were working:\nfour` +
				`\n\nThis is how Claude Code surfaces messages the user sends mid-turn. Address it."}`, want{"four", 2, 0},
		},
		"two of those": {first + "," + tool + "," + result + "," + midTurn("four", "five"), want{"four\nfive", 3, 0}},
		"nothing said": {`{"role":"user","content":[` + reminder + `]}`, want{"", 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modelfake.New()
			defer s.Close()
			ask(t, s, `{"model":"m","messages":[`+c.messages+`]}`)
			r := s.Requests()[0]
			if diff := cmp.Diff(c.want, want{r.Text, r.Prompts, r.Turn}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func midTurn(texts ...string) string {
	var joined string
	for i, text := range texts {
		if i > 0 {
			joined += `\n\n`
		}
		joined += `The user sent a new message while you were working:\n` + text +
			`\n\nThis is how Claude Code surfaces messages the user sends mid-turn. Address it.`
	}
	return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"hi"},` +
		`{"type":"text","text":"` + joined + `"}]}`
}
