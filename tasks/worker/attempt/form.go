package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// Answers to a question of an MCP server that are no value.
const (
	formDone    = "Done"
	formSkip    = "Skip" // for a field that need not be filled in
	formDecline = "Decline"
)

// Bounds of a form. What a server says beyond them is not shown to people.
const (
	maxFormText   = 2 << 10 // of the message, of a field and of an address, in bytes
	maxFormFields = 10
	maxFormEnum   = 4 // choices that are options; the question lists all
)

var (
	camelCase = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)
	// secretWord finds those who ask for a secret openly. Others use other words.
	secretWord = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:pass[ _-]?(?:word|phrase|code)|passwd|pwd|token|secret|` +
		`[a-z]*key|code|credential|pin|otp)s?(?:[^a-z]|$)`)
	// harmlessKey finds keys that are no secret, such as that of an issue.
	harmlessKey = regexp.MustCompile(`(?i)(?:issue|ticket|project|sort)[ _-]?keys?`)
)

// Reasons for an answer without a value.
var (
	errMisfit   = errors.New("the answer does not fit the field")
	errDeclined = errors.New("nobody answered")
)

// form is the schema of a form.
type form struct {
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required"`
}

// formField is a property of a form's schema: a text, a number, a choice, or yes or no.
type formField struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	OneOf       []struct {
		Const string `json:"const"`
	} `json:"oneOf"` // another way to write Enum
}

// fill asks people what an MCP server wants to know: one question for each field of its form. Every answer but the last
// one counts only with the others.
func (k *talk) fill(ctx context.Context, r agent.ToolRequest) agent.Decision {
	server := strings.TrimPrefix(r.Tool, "mcp__")
	var f form
	if len(r.Form.Schema) > 0 && json.Unmarshal(r.Form.Schema, &f) != nil {
		return k.decline(ctx, server, "", errors.New("errand cannot read its form"))
	}
	names := r.Form.Fields
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(f.Properties))
	}
	if name, err := f.check(names); err != nil {
		return k.decline(ctx, server, name, err)
	}
	message, rest := format.Head(k.redactor.String(r.Form.Message), maxFormText)
	if rest != "" {
		message += "…"
	}
	asks := "The MCP server " + server + " asks, in its own words:\n\n" + fenced(message) +
		"\n\nNever answer with a secret: the server and everyone in this thread get the answer."
	if len(names) == 0 {
		return k.visit(ctx, server, asks, r.Form.URL)
	}
	filled := map[string]any{}
	for _, name := range names {
		value, err := k.field(ctx, asks, name, f)
		switch {
		case errors.Is(err, errMisfit):
			return k.decline(ctx, server, name, err)
		case err != nil:
			return agent.Decision{Reason: err.Error()}
		case value != nil:
			filled[name] = value
		}
	}
	input, err := json.Marshal(filled)
	if err != nil {
		return k.decline(ctx, server, "", err)
	}
	return agent.Decision{Allow: true, Input: input}
}

// check returns the field for which a form is declined, and why.
func (f *form) check(names []string) (string, error) {
	if len(names) > maxFormFields {
		return "", fmt.Errorf("its form has %d fields, at most %d are allowed", len(names), maxFormFields)
	}
	for _, name := range f.Required {
		if !slices.Contains(names, name) {
			return name, errors.New("its form requires a field that it does not have")
		}
	}
	for _, name := range names {
		p := f.Properties[name]
		for _, o := range p.OneOf {
			p.Enum = append(p.Enum, o.Const)
		}
		// Of a choice, the server knows every answer.
		choice := p.Type == "boolean" || p.Type == "string" && len(p.Enum) > 0
		switch words := camelCase.ReplaceAllString(name+"\n"+p.Title, "$1$3 $2$4"); {
		case !choice && secretWord.MatchString(harmlessKey.ReplaceAllString(words, " ")):
			return name, errors.New("it asks for what may be a secret")
		case !slices.Contains([]string{"string", "number", "integer", "boolean"}, p.Type):
			return name, errors.New("errand cannot ask people for a field of this type")
		case len(p.words(name)) > maxFormText:
			return name, errors.New("a field of its form is too long")
		}
		f.Properties[name] = p
	}
	return "", nil
}

// decline refuses a form, and says so in the thread.
func (k *talk) decline(ctx context.Context, server, field string, why error) agent.Decision {
	text := "I declined a question of the MCP server " + server + ": " + why.Error() + "."
	if field != "" {
		text += " The field:\n\n" + fenced(k.redactor.Head([]byte(field), maxFormText))
	}
	k.log.Warn("form declined", "run", k.task.ID, "server", server, "err", why)
	_, err := k.say(ctx, text)
	logline.Warn(k.log, err, "say that a form was declined", "run", k.task.ID)
	return agent.Decision{Reason: text}
}

// visit asks people to open an address, or to agree to a message.
func (k *talk) visit(ctx context.Context, server, asks, address string) agent.Decision {
	if len(address) > maxFormText {
		return k.decline(ctx, server, "", errors.New("its address is too long"))
	}
	if address != "" {
		asks += "\n\nOpen this address only if you trust it:\n" + fenced(address)
	}
	a, err := k.ask(ctx, tasks.Question{Text: asks, Options: []string{formDone, formDecline}})
	return agent.Decision{Allow: err == nil && a.Text == formDone}
}

// field asks for the value of one field, once more if the answer does not fit. It returns nil for one that people skip.
func (k *talk) field(ctx context.Context, asks, name string, f form) (any, error) {
	p, required := f.Properties[name], slices.Contains(f.Required, name)
	q := tasks.Question{Text: asks + "\n\nThe field:\n\n" + fenced(p.words(name)) + "\n\n" + p.hint(required)}
	if q.Options = p.options(); q.Options != nil {
		if !required {
			q.Options = append(q.Options, formSkip)
		}
		q.Options = append(q.Options, formDecline)
	}
	for range 2 {
		a, err := k.ask(ctx, q)
		said := strings.Trim(a.Text, "`. \n")
		switch {
		case err != nil:
			return nil, err
		case a.Expired || strings.EqualFold(said, formDecline):
			return nil, errDeclined
		case !required && strings.EqualFold(said, formSkip):
			return nil, nil
		}
		if value, err := p.value(a.Text); err == nil {
			return value, nil
		}
		q.Text = "That answer does not fit. " + q.Text
	}
	return nil, errMisfit
}

// words are what people see of a field.
func (f formField) words(name string) string {
	words := strings.TrimSpace(cmp.Or(f.Title, name) + ". " + f.Description)
	if len(f.Enum) > 0 {
		words += "\n- " + strings.Join(f.Enum, "\n- ")
	}
	return words
}

// hint says how to answer.
func (f formField) hint(required bool) string {
	what := map[string]string{"integer": "a whole number", "number": "a number", "boolean": "yes or no"}[f.Type]
	if len(f.Enum) > 0 {
		what = "one of these choices"
	}
	hint := "Answer with " + cmp.Or(what, "a text")
	if !required {
		hint += ", with `" + formSkip + "` to leave it empty,"
	}
	return hint + " or with `" + formDecline + "`."
}

// options are the answers that a field offers. A text or a number has none: people can name an option by its number.
func (f formField) options() []string {
	switch {
	case f.Type == "boolean":
		return []string{"Yes", "No"}
	case len(f.Enum) <= maxFormEnum:
		return slices.Clone(f.Enum)
	}
	return nil
}

// value returns an answer in the type of its field.
func (f formField) value(answer string) (any, error) {
	answer = strings.TrimSpace(answer)
	switch f.Type {
	case "boolean":
		return strconv.ParseBool(strings.NewReplacer("yes", "true", "no", "false").Replace(strings.ToLower(answer)))
	case "integer":
		return strconv.ParseInt(answer, 10, 64)
	case "number":
		n, err := strconv.ParseFloat(answer, 64)
		if math.IsNaN(n) || math.IsInf(n, 0) { // JSON has no such number
			return nil, strconv.ErrRange
		}
		return n, err
	}
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, answer) {
		return nil, errMisfit
	}
	return answer, nil
}
