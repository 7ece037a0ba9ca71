package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// A question of an MCP server goes to people, field by field, and what they answer has the types that it asked for.
func TestFormOfAServer(t *testing.T) {
	t.Parallel()
	form := func(schema string, fields ...string) agent.Form {
		return agent.Form{Message: "Where?", Fields: fields, Schema: []byte(`{"properties":` + schema + `}`)}
	}
	numbers := form(`{"share":{"type":"number"}}`, "share")
	branch := form(`{"branch":{"type":"string","enum":["main","dev"]}}`, "branch")
	many := form(`{"size":{"type":"string","enum":["1","2","3","4","XL"]}}`, "size")
	needed := form(`{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]`, "a", "b")
	for name, c := range map[string]struct {
		form    agent.Form
		answers []string
		want    string
	}{
		"fields": {
			form(`{"branch":{"type":"string","enum":["main","dev"]},"times":{"type":"integer"},
				"really":{"type":"boolean"}}`, "branch", "times", "really"),
			[]string{"main", "3", "Yes"},
			`true {"branch":"main","really":true,"times":3}`,
		},
		"declined": {
			form(`{"branch":{"type":"string"},"times":{"type":"integer"}}`, "branch", "times"),
			[]string{"main", "decline."},
			"false",
		},
		"no number":       {form(`{"times":{"type":"integer"}}`, "times"), []string{"often", "1.5"}, "false"},
		"not a number":    {numbers, []string{"NaN", "nan"}, "false"},
		"infinite":        {numbers, []string{"-Inf", "Infinity"}, "false"},
		"too large":       {numbers, []string{"1e400", "-1e400"}, "false"},
		"a number":        {numbers, []string{"-1.5e2"}, `true {"share":-150}`},
		"a small number":  {numbers, []string{"1"}, `true {"share":1}`},
		"once more":       {numbers, []string{"some", "2"}, `true {"share":2}`},
		"a text":          {form(`{"a":{"type":"string"}}`, "a"), []string{"1"}, `true {"a":"1"}`},
		"no choice":       {branch, []string{"trunk", "master"}, "false"},
		"a choice":        {branch, []string{"2"}, `true {"branch":"dev"}`},
		"the last choice": {many, []string{"5", "XL"}, `true {"size":"XL"}`},
		"titled choices": {
			form(`{"a":{"type":"string","oneOf":[{"const":"x","title":"The x"}]}}`, "a"),
			[]string{"y", "x"},
			`true {"a":"x"}`,
		},
		"skipped":            {needed, []string{"x", "Skip"}, `true {"a":"x"}`},
		"required":           {needed, []string{"Skip", "x"}, `true {"a":"Skip","b":"x"}`},
		"without order":      {form(`{"a":{"type":"string"}}`), []string{"x"}, `true {"a":"x"}`},
		"key of an issue":    {form(`{"issueKey":{"type":"string"}}`), []string{"PROJ-12"}, `true {"issueKey":"PROJ-12"}`},
		"no word of secrets": {form(`{"keyboardPinned":{"type":"string"}}`), []string{"x"}, `true {"keyboardPinned":"x"}`},
		"choice of a code": {
			form(`{"country_code":{"type":"string","enum":["AT","CH"]},"hasToken":{"type":"boolean"}}`),
			[]string{"CH", "No"},
			`true {"country_code":"CH","hasToken":false}`,
		},
		"titled like its name": {
			form(`{"issueKey":{"type":"string","title":"Issue key, or project key"}}`), []string{"x"}, `true {"issueKey":"x"}`,
		},
		"other keys": {
			form(`{"jira_project_key":{"type":"string"},"sort-key":{"type":"string"},"ticketKeys":{"type":"string"}}`),
			[]string{"x", "y", "z"},
			`true {"jira_project_key":"x","sort-key":"y","ticketKeys":"z"}`,
		},
		"a credential":    {form(`{"a":{"type":"string"}}`), []string{"my ghp_" + strings.Repeat("aB3", 12)}, `true {"a":"my [redacted]"}`},
		"address":         {agent.Form{Message: "Log in.", URL: "https://a.example/x"}, []string{"Done"}, "true"},
		"another address": {agent.Form{Message: "Log in.", URL: "https://a.example/x"}, []string{"what?"}, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, id := asking(t, c.form)
			for _, text := range c.answers {
				var q tasks.Question
				select {
				case q = <-s.asked:
				case said := <-s.said:
					t.Fatalf("not asked: %s", said)
				}
				if !strings.Contains(q.Text, "server tracker asks, in its own words:\n\n```\n"+c.form.Message+"\n```") ||
					!strings.Contains(q.Text, "Never answer with a secret") {
					t.Errorf("asked %+v", q)
				}
				if _, err := f.desk.Answer(t.Context(), id, "", "ann", text); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.ending(id).Result.Text; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// asking starts a task in which the server tracker asks people to fill in a form.
func asking(t *testing.T, form agent.Form) (*fleet, *talkingSource, string) {
	t.Helper()
	f, s := talking(t, nil)
	f.policy.Redactor = agent.NewRedactor()
	f.desk = desk.New(f.store, f.queue, f.policy, nil)
	f.agent.do = func(ctx context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
		d := h.Permit(ctx, agent.ToolRequest{Tool: "mcp__tracker", Human: true, Form: &form})
		return answer(strings.TrimSpace(fmt.Sprintf("%t %s", d.Allow, d.Input))), nil
	}
	f.talker(s)
	return f, s, f.submit(f.task("a", "ask"))
}

// A form that asks for what people should not or cannot say is declined without a question, and the thread says why.
func TestFormThatIsNotAsked(t *testing.T) {
	t.Parallel()
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, fmt.Sprint("f", i))
	}
	text := func(name, title string) agent.Form {
		return agent.Form{
			Fields: []string{name},
			Schema: fmt.Appendf(nil, `{"properties":{%q:{"type":"string","title":%q}}}`, name, title),
		}
	}
	for name, c := range map[string]struct {
		form agent.Form
		said string
	}{
		"password":   {text("password", ""), "secret"},
		"camel case": {text("githubToken", ""), "secret"},
		"initials":   {text("APIKey", ""), "secret"},
		"of a kind":  {text("a", "Your private key"), "secret"},
		"dashes":     {text("access-key", ""), "secret"},
		"of storage": {text("storageAccountKey", ""), "secret"},
		"to sign":    {text("signingKey", ""), "secret"},
		"master":     {text("masterKey", ""), "secret"},
		"consumer":   {text("consumerKey", ""), "secret"},
		"of AWS":     {text("a", "AWS key"), "secret"},
		"one word":   {text("accesskey", ""), "secret"},
		"any word":   {text("masterkeys", ""), "secret"},
		"of both":    {text("issueKeySigningKey", ""), "secret"},
		"title":      {text("a", "Your PIN, please"), "secret"},
		"snake case": {text("client_secret", ""), "secret"},
		"plural":     {text("credentials", ""), "secret"},
		"one time":   {text("a", "Code from your phone"), "secret"},
		"number": {agent.Form{Schema: []byte(
			`{"properties":{"pin":{"type":"integer","oneOf":[{"const":"1"}]}}}`,
		)}, "secret"},
		"array": {agent.Form{
			Fields: []string{"a"}, Schema: []byte(`{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`),
		}, "this type"},
		"unknown field": {agent.Form{Fields: []string{"a"}, Schema: []byte(`{}`)}, "this type"},
		"no field": {agent.Form{
			Fields: []string{"a"}, Schema: []byte(`{"properties":{"a":{"type":"string"}},"required":["b"]}`),
		}, "requires a field"},
		"many fields":  {agent.Form{Fields: eleven, Schema: []byte(`{}`)}, "11 fields"},
		"long field":   {text("a", strings.Repeat("x", 3000)), "too long"},
		"long address": {agent.Form{URL: "https://a.example/" + strings.Repeat("x", 3000)}, "too long"},
		"unreadable":   {agent.Form{Fields: []string{"a"}, Schema: []byte(`[]`)}, "cannot read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, id := asking(t, c.form)
			if got := f.ending(id).Result.Text; got != "false" {
				t.Error(got)
			}
			if said := <-s.said; !strings.Contains(said, "MCP server tracker") || !strings.Contains(said, c.said) {
				t.Error(said)
			}
			if len(s.asked) > 0 {
				t.Errorf("asked %+v", <-s.asked)
			}
		})
	}
}

// What a server says stays in a block of code of at most 2 KiB, and words that only resemble those of secrets are asked.
func TestFormOfALoudServer(t *testing.T) {
	t.Parallel()
	f, s, id := asking(t, agent.Form{
		Message: "```\n# errand says: " + strings.Repeat("x", 3000), Fields: []string{"keyboardPinned"},
		Schema: []byte(`{"properties":{"keyboardPinned":{"type":"string","enum":["a","b","c","d","e"]}}}`),
	})
	q := <-s.asked
	if len(q.Text) > 2600 || !strings.Contains(q.Text, "\n````\n```\n# errand") || !strings.Contains(q.Text, "x…\n````") ||
		!strings.Contains(q.Text, "- e\n") || len(q.Options) > 0 || !strings.Contains(q.Text, "`Decline`") {
		t.Errorf("asked %+v", q)
	}
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "e"); err != nil {
		t.Fatal(err)
	}
	if got := f.ending(id).Result.Text; got != `true {"keyboardPinned":"e"}` {
		t.Error(got)
	}
}
