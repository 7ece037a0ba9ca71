package agent

import (
	"net/http"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/go-json-experiment/json"
)

// cliModels are the models that the pinned CLI (2.1.329) asks by itself: its default with a key and with a login, the small one for pages that
// it has fetched, and those that stand for the names a sub-agent may be given (TestCLIModelsAndBetas).
var cliModels = []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"}

// smallModel is the one of cliModels that every run needs.
const smallModel = "claude-haiku-5-5"

// families are the words by which the CLI takes any model of a kind. A name of one may become another one of its family: the CLI replaces
// models that are retired.
var families = []string{"haiku", "sonnet", "opus", "fable", "mythos"}

// cliChoice are the names with which the choice is the CLI's.
var cliChoice = []string{"default", "best", "opusplan"}

// betas are the values of anthropic-beta that pass: those of requests that the pinned CLI (2.1.329) sends with a run's own questions. Left out is
// what makes an answer dearer or lets another model into it (fast mode, advisors, fallbacks on the server), and what reaches farther than
// the run (files, batches, remote MCP servers, managed agents). TestCLIBetas sees that what the CLI sends is here.
var betas = []string{
	"afk-mode-2026-01-31", "advanced-tool-use-2025-11-20", "auto-mode-classifier-2026-07-16", "cache-diagnosis-2026-04-07",
	"claude-code-20250219", "claude-code-side-query-2026-09-29", "context-1m-2025-08-07", "context-hint-2026-04-09",
	"context-management-2025-06-27", "dangerous-tool-use-2026-09-03", "effort-2025-11-24", "extended-cache-ttl-2025-04-11",
	"inline-tools-2026-09-15", "interleaved-thinking-2025-05-14", "message-threads-2026-08-12",
	"mid-conversation-system-2026-04-07", "mid-conversation-system-clear-at-2026-08-21", "mid-conversation-tool-changes-2026-07-01",
	"oauth-2025-04-20", "per-turn-control-2026-07-01", "prompt-caching-evict-2026-05-12", "prompt-caching-scope-2026-01-05",
	"redact-thinking-2026-02-12", "resumption-2026-10-08", "structured-outputs-2025-12-15", "task-budgets-2026-03-13",
	"thinking-binding-controls-2026-08-01", "thinking-display-updates-2026-08-18", "thinking-resumption-2026-07-17",
	"thinking-token-count-2026-05-13", "timing-2026-09-09", "token-counting-2024-11-01", "tool-search-tool-2025-10-19",
	"web-search-2025-03-05", "web-search-results-only-2026-11-15",
}

// maxNoted bounds what of a run's requests is noted: a tool could send a new word with each.
const maxNoted = 20

// once reports whether a note is new and there is room for it.
func (t *traffic) once(note string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.noted) >= maxNoted || slices.Contains(t.noted, note) {
		return false
	}
	t.noted = append(t.noted, note)
	return true
}

// trim leaves in a request the beta headers that pass.
func (g *gateway) trim(h http.Header) {
	var kept []string
	for _, values := range h.Values("Anthropic-Beta") {
		for value := range strings.SplitSeq(values, ",") {
			switch value = strings.TrimSpace(value); {
			case slices.Contains(betas, value):
				kept = append(kept, value)
			case value != "" && g.seen.once("beta "+value):
				g.note("the gateway drops the beta header %s, which it does not know", redact.Clip(value, 100))
			}
		}
	}
	h.Del("Anthropic-Beta")
	if len(kept) > 0 {
		h.Set("Anthropic-Beta", strings.Join(kept, ","))
	}
}

// models are what a run may ask: its own model (empty: none), and those that an operator allows (none: any that the CLI offers).
func models(own string, allowed []string) []string {
	list := append([]string{smallModel}, allowed...)
	if own != "" {
		list = append(list, own)
	}
	if len(allowed) == 0 || slices.ContainsFunc(list, func(name string) bool { return slices.Contains(cliChoice, name) }) {
		list = append(list, cliModels...)
	}
	return list
}

// startModel is the model that a run starts with: its own, or the first that the operator allows where the CLI's default is not allowed.
// Empty: the CLI's default.
func (r *Runner) startModel(own string) string {
	cliDefault := "claude-opus-5-5"
	if c := r.cfg.Credential; c.APIKey == "" && c.OAuthToken != "" {
		cliDefault = "claude-sonnet-5-5"
	}
	if own != "" || len(r.cfg.Models) == 0 || among(models("", r.cfg.Models), cliDefault) {
		return own
	}
	return r.cfg.Models[0]
}

// Allow lets the run ask a further model, by a name that the CLI takes.
func (g *gateway) Allow(name string) {
	if g == nil {
		return
	}
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	g.models = append(g.models, models(name, []string{name})...)
}

// allows reports whether a call may ask a model.
func (g *gateway) allows(name string) bool {
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	return among(g.models, name)
}

// among reports whether a list that models made has a model.
func among(list []string, name string) bool {
	name = modelID(name)
	kind := family(name)
	return slices.ContainsFunc(list, func(allowed string) bool {
		return modelID(allowed) == name || kind != "" && family(allowed) == kind && !slices.Contains(cliModels, allowed)
	})
}

// family is the one of families that a name is of, or is; empty: none.
func family(name string) string {
	name = modelID(name)
	for _, f := range families {
		if name == f || strings.HasPrefix(name, "claude-") && slices.Contains(strings.Split(name, "-"), f) {
			return f
		}
	}
	return ""
}

// apiError answers as the model's API does, so that the CLI knows what to make of it.
func apiError(w http.ResponseWriter, status int, kind, message string) {
	body, err := json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": message}})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
