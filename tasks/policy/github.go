package policy

// request decides who may have something done on GitHub: who may write there, and listed bots that GitHub does not know
// as accounts.
func request(s Subject, o Object, _ Posture) Verdict {
	for _, r := range o.Repos {
		if known := !r.Missing || !s.Listed; known && !r.Writes {
			return no("%s has no write access to %s.", s.Name, r.Name)
		}
	}
	return allowed
}

// command decides who may do on GitHub what is for people.
func command(s Subject, o Object, p Posture) Verdict {
	if s.Bot {
		return no("Only people may do this.")
	}
	return request(s, o, p)
}

// fork decides what errand may do in a pull request from a fork.
func fork(s Subject, o Object, p Posture) Verdict {
	switch {
	case s.Bot:
		return no("Only people can approve the review of a fork.")
	case o.Writes:
		return no("The branch is in a fork, and I only change branches of this repository. I can review it.")
	case o.Moved:
		return no("The head of the pull request has moved since you wrote that. Look at the new head and repeat the " +
			"command.")
	case !o.Approved:
		return no("The pull request comes from a fork. A person with write access has to comment /review or add the "+
			"label %s after each push.", p.Label)
	}
	return allowed
}

// link decides whether an account on the forge may be linked to one in a chat. It is linked to one only, so that a
// person who is misled cannot lend theirs to a second one, and what the operator has set counts.
func link(s Subject, o Object, _ Posture) Verdict {
	switch {
	case o.Mapped:
		return no("An operator has set another account for one of the two under people: in errand.yaml.")
	case o.LinkedTo != "":
		return no("%s is linked to the account %s in Slack. Say /errand unlink there first, or ask an operator.",
			s.Name, o.LinkedTo)
	}
	return allowed
}
