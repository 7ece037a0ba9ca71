package policy

import "slices"

// workIn decides what a run may do in a repository: what the person who asks may do there themselves.
func workIn(s Subject, r Repo, p Posture) Verdict {
	switch {
	case s.Unlimited:
		return allowed
	case s.Name == "" && p.Unmapped != UnmappedRead:
		return unknown(r, p)
	case r.Name == "":
		return allowed
	case r.ID != s.ID && !r.Missing:
		return no("%s is now the account of somebody else on GitHub. Say /errand link to connect yours.", s.Name)
	case r.Writes:
		return allowed
	case r.Reads, r.Open:
		return Verdict{Allowed: true, Reads: true}
	case s.Name == "":
		return unknown(r, p)
	case r.Missing && s.ID != 0:
		return no("GitHub finds no account %s, or no repository %s. If you have renamed your account, say "+
			"/errand link.", s.Name, r.Name)
	}
	return no("%s has no access to %s.", s.Name, r.Name)
}

// unknown refuses a person whose account is not known.
func unknown(r Repo, p Posture) Verdict {
	where, remedy := " in "+r.Name, "An operator can add you under people: in errand.yaml."
	if r.Name == "" {
		where = ""
	}
	if p.Links {
		remedy = "Say /errand link to connect it."
	}
	return no("I do not know your account on GitHub, so I cannot see what you may do%s. %s", where, remedy)
}

// workInAll decides what a run may do in each of some repositories.
func workInAll(s Subject, repos []Repo, p Posture) Verdict {
	all := allowed
	for _, r := range repos {
		v := workIn(s, r, p)
		if !v.Allowed {
			return v
		}
		all.Reads = all.Reads || v.Reads
	}
	return all
}

// Forgotten is why people may not continue a conversation.
const Forgotten = "I no longer know which repositories this thread has been about. Start a new one."

// work decides whether a run may start, and whether it only reads. Its agent remembers what it has read in the
// conversation. A reason does not name a repository from there, because the request may be in a public pull request.
func work(s Subject, o Object, p Posture) Verdict {
	v := workInAll(s, o.Repos, p)
	switch {
	case !v.Allowed:
		return v
	case o.Forgotten && !s.Unlimited:
		return no(Forgotten)
	case !workInAll(s, o.Past, p).Allowed:
		return no("This thread has been about a repository that you may not read. Start a new one.")
	}
	if o.Channel && p.Unmapped != UnmappedAll {
		if v := post(s, o, p); !v.Allowed {
			return v
		}
	}
	if o.Writes && !v.Reads || o.Public {
		if v := combine(o); !v.Allowed {
			return v
		}
	}
	switch {
	case v.Reads && len(o.Repos) > 1:
		v.Reason = "may read " + o.names(", ") + " but not write to all of them"
	case v.Reads:
		v.Reason = "may read " + o.names("") + " but not write to it"
	}
	if o.Writes && !v.Reads && o.Unsandboxed && !s.readsAll(o, p) {
		v.Reads, v.Reason = true, "may not read every repository that errand works on, and this worker has no sandbox "+
			"that would keep commands away from the others. An operator can enable it (ERRAND_SANDBOX)"
	}
	return v
}

// readsAll reports whether somebody may read everything on a worker, as commands without a sandbox can.
func (s Subject) readsAll(o Object, p Posture) bool {
	if s.Unlimited {
		return !s.Partial
	}
	return s.Name != "" && len(o.Machine) > 0 && workInAll(s, o.Machine, p).Allowed
}

// post decides whether answers about repositories may be posted in a channel.
func post(_ Subject, o Object, _ Posture) Verdict {
	for _, r := range o.Repos {
		if r.Private && !r.Listed && !r.Open {
			return no("%s is private, and its answers may not be posted in this channel. Ask me in a direct message, "+
				"or have an operator add the channel under channels: in errand.yaml.", r.Name)
		}
	}
	return allowed
}

// combine refuses a run that could show in a public repository, by a change, the description of a pull request or its
// answer, what is in a private one.
func combine(o Object) Verdict {
	var public, private string
	beside := false // the private one is the task's, too
	for i, r := range slices.Concat(o.Repos, o.Past) {
		if r.Private && !r.Open {
			private, beside = r.Name, i < len(o.Repos)
		} else if !r.Private && i < len(o.Repos) {
			public = r.Name
		}
	}
	switch {
	case public == "" || private == "":
		return allowed
	case beside:
		return no("%s is public and %s is not, and pull requests in the one could show what is in the other. Ask for "+
			"each in a separate conversation.", public, private)
	}
	return no("This conversation has been about a repository that is not public, and an answer or a pull request in "+
		"%s could show what is in it. Ask in a separate conversation.", public)
}

// steer decides who may answer a question of a run: people who may do what the run may do.
func steer(s Subject, o Object, p Posture) Verdict {
	v := workInAll(s, o.Repos, p)
	switch {
	case o.Unsandboxed && !s.readsAll(o, p):
		return no("The worker has no sandbox, so only people who may read every repository that errand works on can " +
			"answer this.")
	case v.Reads && o.Writes:
		return no("Only people who may write in %s can answer this.", o.names(" and "))
	}
	return v
}

// markReady decides who may mark errand's draft as ready: people who may write in the repository or, if the forge does
// not limit them, control the task.
func markReady(s Subject, o Object, p Posture) Verdict {
	v := workInAll(s, o.Repos, p)
	switch {
	case v.Reads:
		return no(NotYours)
	case s.Unlimited:
		return control(s, o, p)
	}
	return v
}
