package gateway

import (
	"slices"
	"strings"
)

// cliModels are the models that the pinned CLI (2.1.329) asks by itself: its default with a key and with a login, the
// small one for fetched pages, and those behind the names that a sub-agent may be given (TestCLIModelsAndBetas).
var cliModels = []string{"claude-opus-5-5", "claude-sonnet-5-5", SmallModel, "claude-fable-5-2"}

// SmallModel is the CLI's model for small jobs, which every run needs.
const SmallModel = "claude-haiku-5-5"

// families are names by which the CLI chooses a model of a kind. A model may be replaced by another one of its family:
// the CLI replaces retired models.
var families = []string{"haiku", "sonnet", "opus", "fable", "mythos"}

// cliChoice are names that leave the choice to the CLI.
var cliChoice = []string{"default", "best", "opusplan"}

// models returns the models that a run may ask: its own (empty: none), and those that an operator allows (none: any
// that the CLI offers).
func models(own string, allowed []string) []string {
	list := append([]string{SmallModel}, allowed...)
	if own != "" {
		list = append(list, own)
	}
	if len(allowed) == 0 || slices.ContainsFunc(list, func(name string) bool { return slices.Contains(cliChoice, name) }) {
		list = append(list, cliModels...)
	}
	return list
}

// StartModel returns the model that a run starts with: its own if it names one, or the first allowed model if the
// operator does not allow the CLI's default. Empty means the CLI's default.
func (u *Upstream) StartModel(own string) string {
	cliDefault := "claude-opus-5-5"
	if c := u.cfg.Credential; c.APIKey == "" && c.OAuthToken != "" {
		cliDefault = "claude-sonnet-5-5"
	}
	if own != "" || len(u.cfg.Models) == 0 || among(models("", u.cfg.Models), cliDefault) {
		return own
	}
	return u.cfg.Models[0]
}

// Allow lets the run ask a further model, by a name that the CLI accepts.
func (g *Gateway) Allow(name string) {
	if g == nil {
		return
	}
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	g.models = append(g.models, models(name, []string{name})...)
}

// allows reports whether a call may ask a model.
func (g *Gateway) allows(name string) bool {
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	return among(g.models, name)
}

// among reports whether a list that models returned includes a model.
func among(list []string, name string) bool {
	name = ModelID(name)
	kind := family(name)
	return slices.ContainsFunc(list, func(allowed string) bool {
		return ModelID(allowed) == name || kind != "" && family(allowed) == kind && !slices.Contains(cliModels, allowed)
	})
}

// family returns the family of a model, or the family that the name itself is; empty: none.
func family(name string) string {
	name = ModelID(name)
	for _, f := range families {
		if name == f || strings.HasPrefix(name, "claude-") && slices.Contains(strings.Split(name, "-"), f) {
			return f
		}
	}
	return ""
}
