package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// betas are the values of anthropic-beta that may pass: those that the pinned CLI (2.1.329) sends with a run's own
// questions. Values are left out that make an answer more expensive or let another model into it (fast mode, advisors,
// fallbacks on the server), and values that reach beyond the run (files, batches, remote MCP servers, managed agents).
// TestCLIBetas checks that the list covers what the CLI sends.
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

// apiHeaders are the headers of the model's API that may pass.
var apiHeaders = []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access"}

// cleanHeader removes from a request everything that could charge another account or change the protocol: further
// credentials, headers that choose an account or a workspace, and unknown beta values. The answers to such requests
// would count against the fleet's credential.
func (g *Gateway) cleanHeader(h http.Header) {
	for name := range h {
		switch {
		case name == "Authorization", name == "X-Api-Key", name == "Cookie", name == "Proxy-Authorization", name == "Connection", name == "Upgrade",
			strings.HasPrefix(name, "Anthropic-") && !slices.Contains(apiHeaders, name):
			h.Del(name)
		}
	}
	h.Set("Accept-Encoding", "identity") // the CLI offers four encodings; tokens are counted in plain text
	g.cleanBetas(h)
}

// cleanBetas removes unknown beta values, and notes each of them once.
func (g *Gateway) cleanBetas(h http.Header) {
	var kept []string
	for _, values := range h.Values("Anthropic-Beta") {
		for value := range strings.SplitSeq(values, ",") {
			switch value = strings.TrimSpace(value); {
			case slices.Contains(betas, value):
				kept = append(kept, value)
			case value != "" && g.seen.noteOnce("beta "+value):
				g.note("the gateway drops the unknown beta header %s", redact.Clip(value, 100))
			}
		}
	}
	h.Del("Anthropic-Beta")
	if len(kept) > 0 {
		h.Set("Anthropic-Beta", strings.Join(kept, ","))
	}
}
