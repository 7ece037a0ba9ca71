package agent

import (
	"context"
	"encoding/json"

	experimental "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/runlog"
)

// Offer lists what can be called by name in a directory.
type Offer struct {
	Agents   []OfferedAgent   `json:"agents"`
	Commands []OfferedCommand `json:"commands"`
	Models   []OfferedModel   `json:"models"`
}

// OfferedAgent is one that a Message can name, or begin with as @name.
type OfferedAgent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// OfferedCommand is one that a prompt can begin with, as /name.
type OfferedCommand struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Argument    string `json:"argument,omitempty"` // a hint at its arguments
}

// OfferedModel is one that a Spec can name.
type OfferedModel struct {
	Name        string   `json:"name"` // for Spec.Model
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Efforts     []string `json:"efforts,omitempty"` // for Spec.Effort
}

// Bounds of an offer: a checkout may hold anything.
const (
	maxOffered    = 500
	maxOfferWords = 300 // bytes of a description
)

// Offer asks the CLI what it offers to a run of s. Only ID, Dir, Reads, Profile, Instructions, TrustedConfig and Model
// of s are used.
// The CLI does not ask the model and runs nothing that the directory contains: no hooks, servers or helpers. It is
// supervised as in any run. The error is an *Error, or that of ctx.
func (r *Runner) Offer(ctx context.Context, s Spec) (Offer, error) {
	s = Spec{
		ID: s.ID, Dir: s.Dir, Reads: s.Reads, Profile: s.Profile, TrustedConfig: s.TrustedConfig, Model: s.Model,
		Instructions: s.Instructions,
		Prompt:       Message{Text: "-"}, // required, but never sent
		inert:        true,
	}
	if e := r.check(&s); e != nil {
		return Offer{}, e
	}
	cli, e := r.cli()
	if e != nil {
		return Offer{}, e
	}
	log, err := runlog.Discard()
	if err != nil {
		return Offer{}, NewError(ClassInternal, err.Error())
	}
	defer func() { _ = log.Close() }()
	in := &invocation{cli: cli, spec: s, host: Unattended{}, log: log, redactor: r.cfg.Redactor.ForRun()}
	l, e := r.launch(ctx, in)
	if e != nil && ctx.Err() != nil {
		return Offer{}, context.Cause(ctx)
	}
	if e != nil {
		return Offer{}, e
	}
	defer l.removeDirs()
	stop := context.AfterFunc(ctx, func() { l.cancel(context.Cause(ctx)) })
	defer stop()
	answer, ok := l.initialize()
	cause := l.endSession(ok)
	l.wait()
	l.closeNetwork()
	switch {
	case ok:
		return offered(r.cfg.Redactor.JSON(json.RawMessage(answer)), s)
	case ctx.Err() != nil:
		return Offer{}, context.Cause(ctx)
	}
	if res := l.result(false, cause); res.Error != nil {
		return Offer{}, res.Error
	}
	return Offer{}, NewError(ClassStart, "the CLI did not answer")
}

// greeting is the CLI's answer to the initialize request, as far as it lists names.
type greeting struct {
	Agents []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"agents"`
	Commands []struct {
		Name        string   `json:"name"`
		Aliases     []string `json:"aliases"`
		Description string   `json:"description"`
		Argument    string   `json:"argumentHint"`
	} `json:"commands"`
	Models []struct {
		Value       string   `json:"value"`
		Title       string   `json:"displayName"`
		Description string   `json:"description"`
		Efforts     []string `json:"supportedEffortLevels"`
	} `json:"models"`
}

// readGreeting reads the CLI's answer, which may be JSON that is not quite valid.
func readGreeting(answer jsontext.Value) (g greeting, err error) {
	err = experimental.Unmarshal(answer, &g, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return g, err
}

// offered reads the CLI's answer to the initialize request. It omits commands about the session, because there is no
// terminal, and the names of the plugins of s.
func offered(answer json.RawMessage, s Spec) (Offer, error) {
	told, err := readGreeting(jsontext.Value(answer))
	if err != nil {
		return Offer{}, NewError(ClassUnknown, "read the names that the CLI offers: "+err.Error())
	}
	o := Offer{Agents: []OfferedAgent{}, Commands: []OfferedCommand{}, Models: []OfferedModel{}}
	for _, a := range told.Agents[:min(len(told.Agents), maxOffered)] {
		o.Agents = append(o.Agents, OfferedAgent{s.withoutPlugin(a.Name), redact.Clip(a.Description, maxOfferWords)})
	}
	for _, c := range told.Commands[:min(len(told.Commands), maxOffered)] {
		if !forTerminal(c.Name) {
			o.Commands = append(o.Commands, OfferedCommand{
				s.withoutPlugin(c.Name), redact.Clip(c.Description, maxOfferWords),
				redact.Clip(c.Argument, maxOfferWords),
			})
		}
	}
	for _, m := range told.Models[:min(len(told.Models), maxOffered)] {
		o.Models = append(o.Models, OfferedModel{
			m.Value, m.Title, redact.Clip(m.Description, maxOfferWords), m.Efforts,
		})
	}
	return o, nil
}
