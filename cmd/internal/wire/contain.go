package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// sandbox is what a Runner makes of ERRAND_SANDBOX; see contain for the rest.
func sandbox(c config.Config) agent.Sandbox {
	if c.Worker.Sandbox == config.SandboxAuto {
		return agent.SandboxBwrap
	}
	return agent.Sandbox(c.Worker.Sandbox)
}

// contain refuses to start a worker whose agents could do more than the operator has agreed to, and says what they can do. People's tasks
// run commands, so this does not go by what is configured.
func contain(c config.Config, r *agent.Runner, log *slog.Logger) error {
	if os.Geteuid() == 0 && !c.Worker.AllowRoot {
		return errors.New("start the worker as root: its agents could read what only root can; run it as an ordinary user, or set ERRAND_ALLOW_ROOT=true")
	}
	p, err := r.Protection(context.Background()) // which is bounded by itself
	switch {
	case err != nil && c.Worker.Sandbox == config.SandboxAuto:
		return fmt.Errorf("start the worker without a sandbox: %w; then: %s", err, agent.Reach)
	case err != nil:
		log.Error("no task can run without the sandbox", "why", err)
	case p.Reach != "":
		log.Warn("runs have no sandbox (ERRAND_SANDBOX=none)", "reach", p.Reach)
	}
	for _, notice := range p.Notices {
		log.Warn("runs are not fully contained", "why", notice)
	}
	return nil
}
