package attempt

import (
	"errors"
	"maps"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/publish"
)

// lookAgain asks a second run about the answer of the first, if the source wants that, and returns the result of both.
// Whatever happens to the second run, the answer of the first one counts, unless a person or the source has ended the
// task meanwhile. A worker that drains does not begin again what is answered.
func (p *Processor) lookAgain(r *run, s setting, spec agent.Spec, h *host, first agent.Result) agent.Result {
	if s.SecondLook == nil || first.Outcome != agent.Done || len(first.Structured) == 0 {
		return first
	}
	look := s.SecondLook(r.Ctx, first.Structured)
	if look == nil {
		return first
	}
	if look.Prompt == "" || r.Claim.Record().Crashes > 0 { // the second look may be what its worker died of
		return p.unseen(r, *look, first)
	}
	show := func(text string) { h.emit(agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}) }
	show(look.Doing)
	second, err := p.second(r, s, spec, *look, &secondHost{host: h, first: first})
	both := together(first, second)
	r.second = second // which may have learned something about the credential
	if err == nil {
		both.Structured, err = look.Merge(second.Structured)
	}
	if err == nil {
		return both
	}
	if !r.cancelled() {
		p.Log.Warn("second look", "run", r.Claim.ID(), "outcome", string(second.Outcome), "err", err)
		show("The second look failed, so the answer is used as it was.")
	}
	return p.unseen(r, *look, both)
}

// unseen returns a result whose answer had no second look. If its source cannot say so, the answer stays as it was. If
// the task was ended meanwhile, nothing of it counts.
func (p *Processor) unseen(r *run, look tasks.SecondLook, result agent.Result) agent.Result {
	if r.cancelled() {
		result.Outcome = agent.Stopped
		return result
	}
	merged, err := look.Merge(nil)
	logline.Warn(p.Log, err, "note that there was no second look", "run", r.Claim.ID())
	if err == nil {
		result.Structured = merged
	}
	return result
}

// second runs the agent on the question of a second look: as the first run, within what that has left, and without its
// conversation and its audience.
func (p *Processor) second(
	r *run, s setting, spec agent.Spec, look tasks.SecondLook, h *secondHost,
) (agent.Result, error) {
	if spec.MaxUSD > 0 {
		if spec.MaxUSD -= h.first.CostUSD; spec.MaxUSD <= 0 {
			return agent.Result{}, errors.New("the first run has used up the maximum cost")
		}
	}
	if spec.Limit > 0 {
		if spec.Limit -= h.first.Duration; spec.Limit <= 0 {
			return agent.Result{}, errors.New("the first run has used up the time")
		}
	}
	spec.Prompt = agent.Message{Text: look.Prompt, Composed: true}
	spec.System, spec.Schema = format.Paragraphs(look.System, s.place.About), look.Schema
	spec.Resume, spec.History, spec.Tools, spec.Checkpoint = nil, nil, nil, nil
	spec.Header = append(spec.Header, "second look: "+look.Doing)
	result, err := p.Runner.Run(r.Ctx, spec, h)
	if err == nil && (result.Outcome != agent.Done || len(result.Structured) == 0) {
		err = errors.New("the run has no answer")
	}
	return result, err
}

// together returns the result of a run with what its second look has used.
func together(first, second agent.Result) agent.Result {
	first.CostUSD += second.CostUSD
	first.Usage = first.Usage.Plus(second.Usage)
	first.Turns += second.Turns
	first.Duration += second.Duration
	first.Egress = publish.Both(first.Egress, second.Egress)
	if first.API != nil && second.API != nil {
		api := *first.API
		api.Calls, api.Errors = api.Calls+second.API.Calls, map[int]int{}
		maps.Copy(api.Errors, first.API.Errors)
		for status, n := range second.API.Errors {
			api.Errors[status] += n
		}
		first.API = &api
	}
	first.Resources.CPU += second.Resources.CPU
	first.Resources.Stuck += second.Resources.Stuck
	first.Resources.Swept += second.Resources.Swept
	first.Resources.Peak = max(first.Resources.Peak, second.Resources.Peak)
	return first
}

// secondHost is the host of a second look. What it does is shown as a part of the run, and what it says is not.
type secondHost struct {
	agent.Unattended

	host  *host
	first agent.Result
}

// Event passes on what the agent does, and what both runs have used so far.
func (h *secondHost) Event(e agent.Event) {
	switch e.Kind {
	case agent.ToolUse, agent.ToolResult, agent.Thinking, agent.Notice:
	case agent.Used:
		e.CostUSD += h.first.CostUSD
		if e.Usage != nil {
			sum := h.first.Usage.Plus(*e.Usage)
			e.Usage = &sum
		}
	default:
		return
	}
	if throttles(e.Class) {
		h.host.slow()
	}
	h.host.emit(e)
}
