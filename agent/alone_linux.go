package agent

import "context"

// A run of the Untrusted profile gets no network: in its sandbox there is loopback, and nobody on it but the run itself. A socket belongs to
// the network it was made in, whoever holds it. So the keeper, which is inside, makes the one on which the gateway listens and hands it
// out to the worker: the CLI connects to an address of its own network and is answered from outside.

// gatewayPort is where the CLI finds the gateway then. Nothing else is there.
const gatewayPort = 8080

// alone reports whether runs can be given a network of their own. That bubblewrap works does not say so: a policy may forbid its loopback.
func (r *Runner) alone(ctx context.Context, bwrap string) bool {
	s := r.sandbox
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alone {
		return true
	}
	why := r.try(ctx, bwrap, "--unshare-net")
	s.alone = why == nil
	if !s.alone && !s.toldNet {
		s.toldNet = true
		r.log.Warn("untrusted runs share the network", "why", why.problem)
	}
	return s.alone
}
