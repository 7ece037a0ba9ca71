package policy

// NotYours is why people may not control a task in a chat.
const NotYours = "Only the person who asked for this, or an approver, can do that."

// control decides who may stop and retry a task in a chat, and approve what it does.
func control(s Subject, o Object, _ Posture) Verdict {
	if o.Own || s.Approver {
		return allowed
	}
	return no(NotYours)
}

// ask decides who may ask in a chat. Bots that may not get no answer, because they might answer that.
func ask(s Subject, o Object, p Posture) Verdict {
	const change = " An operator can change that."
	switch {
	case s.Bot:
		return Verdict{Allowed: o.Takes && s.Listed}
	case !o.Takes:
		return no("I do not take requests in this channel." + change)
	case s.Listed:
		return allowed
	case p.People && !p.Teams:
		return no("You are not on the list of people who can ask me." + change)
	case s.Guest:
		return no("I do not take requests from guests." + change)
	case s.Member:
		return allowed
	case p.Teams:
		return no("I do not take requests from members of your workspace." + change)
	}
	return no("I only take requests from members of this workspace." + change)
}
