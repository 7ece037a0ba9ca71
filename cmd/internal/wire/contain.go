package wire

import (
	"context"
	"log/slog"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// sandbox returns the Runner's sandbox for ERRAND_SANDBOX; see contained for the rest.
func sandbox(c config.Config) agent.Sandbox {
	if c.Worker.Sandbox == config.SandboxAuto {
		return agent.SandboxBwrap
	}
	return agent.Sandbox(c.Worker.Sandbox)
}

// contained returns why a worker must not start although its settings are valid: its agents could do more than the
// operator has agreed to. It does not depend on the configured repositories or tools, because users' tasks run
// commands.
func contained(c config.Config) (problems config.Problems) {
	if os.Geteuid() == 0 && !c.Worker.AllowRoot {
		problems = append(problems, config.Problem{
			Where: "the worker's user", What: "is root: its agents could read what only root can",
			Remedy: "run it as an ordinary user, or set ERRAND_ALLOW_ROOT=true",
		})
	}
	if c.Worker.Sandbox != config.SandboxAuto {
		return problems
	}
	c.Routing.MCP = nil // mistakes there are reported separately
	r, err := newRunner(c, redactor(c), slog.New(slog.DiscardHandler))
	if err != nil {
		return problems // load reports the setting
	}
	if _, err := r.Protection(context.Background()); err != nil { // has its own time limit
		problems = append(problems, config.Problem{
			Where: "ERRAND_SANDBOX", What: "is auto, and there is no sandbox: " + err.Error(), Remedy: "with none: " + agent.Reach,
		})
	}
	return problems
}

// tellContainment logs what a worker's agents can reach.
func tellContainment(c config.Config, r *agent.Runner, log *slog.Logger) {
	p, err := r.Protection(context.Background()) // has its own time limit
	switch {
	case err != nil:
		log.Error("no task can run without the sandbox", "why", err)
	case p.Reach != "":
		log.Warn("runs have no sandbox (ERRAND_SANDBOX=none)", "reach", p.Reach)
	}
	for _, notice := range p.Notices {
		log.Warn("runs are not fully contained", "why", notice)
	}
}
