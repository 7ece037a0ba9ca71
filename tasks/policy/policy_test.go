package policy

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables into the documents")

// row is a row of the table: four facts in words and as the policy gets them, and the verdict in words.
type row struct {
	who     string
	subject Subject
	does    string
	action  Action
	what    string
	object  Object
	set     string
	posture Posture
	verdict string
}

// group makes rows of one action.
func group(does string, action Action, rows ...row) []row {
	for i := range rows {
		rows[i].does, rows[i].action = does, action
	}
	return rows
}

// Subjects and repositories of the rows.
var (
	errand, token = Subject{Unlimited: true}, Subject{Unlimited: true, Partial: true}
	nobody, ann   = Subject{}, Subject{Name: "ann"}
	linked        = Subject{Name: "ann", ID: 7}
	viewer, user  = Subject{Role: Viewer}, Subject{Role: User}
	operator      = Subject{Role: Operator}
	robot, friend = Subject{Name: "ci[bot]", Bot: true}, Subject{Name: "ci[bot]", Bot: true, Listed: true}

	writes, reads     = Repo{Name: "acme/api", Writes: true}, Repo{Name: "acme/api", Reads: true}
	closed, open      = Repo{Name: "acme/web", Private: true}, Repo{Name: "acme/web", Private: true, Open: true}
	private, private2 = Repo{Name: "acme/api", Writes: true, Private: true}, Repo{Name: "acme/web", Writes: true, Private: true}

	unseen = Repo{Name: "acme/api", Missing: true}

	all, read, none = Posture{Unmapped: UnmappedAll}, Posture{Unmapped: UnmappedRead}, Posture{Unmapped: UnmappedRefuse}
	links           = Posture{Unmapped: UnmappedRead, Links: true}
)

// run is a run that may write in repositories.
func run(repos ...Repo) Object { return Object{Repos: repos, Writes: true} }

// after is a run in a repository, in a conversation that has been about another one.
func after(r, past Repo) Object { return Object{Repos: []Repo{r}, Past: []Repo{past}, Writes: true} }

// bare is a run without a sandbox on a worker that has repositories.
func bare(machine ...Repo) Object {
	return Object{Repos: []Repo{writes}, Writes: true, Unsandboxed: true, Machine: machine}
}

// at is a task in acme/api, and in acme/web with a second role there.
func at(roles ...Role) (o Object) {
	for i, role := range roles {
		o.Repos = append(o.Repos, Repo{Name: []string{"acme/api", "acme/web"}[i], Role: role})
	}
	return o
}

const (
	continued = "You may not continue this conversation. Start a new one."
	unknown1  = "I do not know your account on GitHub, so I cannot see what you may do in acme/web. An operator can add you under people: in errand.yaml."
	mayNot    = "This thread has been about a repository that you may not read. Start a new one."
	elsewhere = "acme/api is private, and its answers may not be posted in this channel. Ask me in a direct message, or have an operator add the channel under channels: in errand.yaml."
	together  = "This conversation has been about a repository that is not public, and an answer or a pull request in acme/api could show what is in it. Ask in a separate conversation."
	sandbox   = "may not read every repository that errand works on, and this worker has no sandbox that would keep commands away from the others. An operator can enable it (ERRAND_SANDBOX)"
	steering  = "The worker has no sandbox, so only people who may read every repository that errand works on can answer this."
	change    = " An operator can change that."
)

// table is the policy. docs/access.md shows it.
var table = slices.Concat(
	group("have a run work", Work,
		row{who: "errand itself, or a role alone", subject: errand, what: "any repository", object: run(closed), verdict: "yes"},
		row{who: "account unknown", subject: nobody, what: "a repository", object: run(closed), set: "`unmapped: all`", posture: all, verdict: "yes"},
		row{who: "account unknown", subject: nobody, what: "no repository", object: run(Repo{}), set: "`unmapped: read`", posture: read, verdict: "yes"},
		row{who: "account unknown", subject: nobody, what: "an open repository", object: run(open), set: "`unmapped: read`", posture: read, verdict: "yes, to read: may read acme/web but not write to it"},
		row{who: "account unknown", subject: nobody, what: "a repository", object: run(closed), set: "`unmapped: read`", posture: read, verdict: "no: " + unknown1},
		row{who: "account unknown", subject: nobody, what: "a repository", object: run(closed), set: "`unmapped: read`, `link: true`", posture: links, verdict: "no: I do not know your account on GitHub, so I cannot see what you may do in acme/web. Say /errand link to connect it."},
		row{who: "account unknown", subject: nobody, what: "no repository", object: run(Repo{}), set: "`unmapped: refuse`", posture: none, verdict: "no: I do not know your account on GitHub, so I cannot see what you may do. An operator can add you under people: in errand.yaml."},
		row{who: "account unknown", subject: nobody, what: "an open repository", object: run(open), set: "`unmapped: refuse`", posture: none, verdict: "no: " + unknown1},
		row{who: "an account", subject: ann, what: "no repository", object: run(Repo{}), verdict: "yes"},
		row{who: "an account", subject: ann, what: "that may write", object: run(writes), verdict: "yes"},
		row{who: "an account", subject: ann, what: "that may read", object: run(reads), verdict: "yes, to read: may read acme/api but not write to it"},
		row{who: "an account", subject: ann, what: "an open repository", object: run(open), verdict: "yes, to read: may read acme/web but not write to it"},
		row{who: "an account", subject: ann, what: "that has no access", object: run(closed), verdict: "no: ann has no access to acme/web."},
		row{who: "an account", subject: ann, what: "that does not exist, or a repository that does not", object: run(Repo{Name: "acme/web", Missing: true}), verdict: "no: ann has no access to acme/web."},
		row{who: "a linked account", subject: linked, what: "that may write", object: run(Repo{Name: "acme/web", Writes: true, ID: 7}), verdict: "yes"},
		row{who: "a linked account", subject: linked, what: "whose name another person has now", object: run(Repo{Name: "acme/web", Writes: true, ID: 8}), verdict: "no: ann is now the account of somebody else on GitHub. Say /errand link to connect yours."},
		row{who: "a linked account", subject: linked, what: "that does not exist, or a repository that does not", object: run(Repo{Name: "acme/web", Missing: true}), verdict: "no: GitHub finds no account ann, or no repository acme/web. If you have renamed your account, say /errand link."},
		row{who: "an account", subject: ann, what: "that may write to one of two and read the other", object: run(writes, Repo{Name: "acme/web", Reads: true}), verdict: "yes, to read: may read acme/api, acme/web but not write to all of them"},
		row{who: "an account", subject: ann, what: "that may write to one of two, and has no access to the other", object: run(writes, closed), verdict: "no: ann has no access to acme/web."},

		row{who: "an account", subject: ann, what: "after work in a repository that it may read", object: after(private, Repo{Name: "acme/old", Reads: true}), verdict: "yes"},
		row{who: "an account", subject: ann, what: "after work in a repository that it may not read", object: after(private, closed), verdict: "no: " + mayNot},
		row{who: "account unknown", subject: nobody, what: "after work in a repository", object: after(Repo{}, closed), set: "`unmapped: read`", posture: read, verdict: "no: " + mayNot},
		row{who: "an account", subject: ann, what: "after work that is not known", object: Object{Repos: []Repo{writes}, Forgotten: true}, verdict: "no: " + Forgotten},
		row{who: "errand itself, or a role alone", subject: errand, what: "after work that is not known", object: Object{Repos: []Repo{writes}, Forgotten: true}, verdict: "yes"},
		row{who: "an account", subject: ann, what: "a public repository, after work in a private one", object: after(writes, private2), verdict: "no: " + together},
		row{who: "an account", subject: ann, what: "the same, to read, answered on GitHub", object: Object{Repos: []Repo{writes}, Past: []Repo{private2}, Public: true}, verdict: "no: " + together},
		row{who: "an account", subject: ann, what: "the same, to read, answered elsewhere", object: Object{Repos: []Repo{writes}, Past: []Repo{private2}}, verdict: "yes"},
		row{who: "an account", subject: ann, what: "a public repository, after work in an open one", object: after(writes, open), verdict: "yes"},
		row{who: "an account", subject: ann, what: "a private repository, after work in a public one", object: after(private, Repo{Name: "acme/old", Writes: true}), verdict: "yes"},
		row{who: "errand itself, or a role alone", subject: errand, what: "a public and a private repository together", object: run(writes, private2), verdict: "no: acme/api is public and acme/web is not, and pull requests in the one could show what is in the other. Ask for each in a separate conversation."},
		row{who: "errand itself, or a role alone", subject: errand, what: "a public repository and an open one together", object: run(writes, open), verdict: "yes"},

		row{who: "an account", subject: ann, what: "a private repository, answered in a channel", object: Object{Repos: []Repo{private}, Channel: true}, verdict: "no: " + elsewhere},
		row{who: "errand itself, or a role alone", subject: errand, what: "the same", object: Object{Repos: []Repo{private}, Channel: true}, verdict: "no: " + elsewhere},
		row{who: "an account", subject: ann, what: "the same", object: Object{Repos: []Repo{private}, Channel: true}, set: "`unmapped: all`", posture: all, verdict: "yes"},
		row{who: "an account", subject: ann, what: "a private repository that the channel lists", object: Object{Repos: []Repo{{Name: "acme/api", Reads: true, Private: true, Listed: true}}, Channel: true}, verdict: "yes, to read: may read acme/api but not write to it"},
		row{who: "an account", subject: ann, what: "an open repository, answered in a channel", object: Object{Repos: []Repo{open}, Channel: true}, verdict: "yes, to read: may read acme/web but not write to it"},
		row{who: "an account", subject: ann, what: "a private repository, answered in a direct message", object: run(private), verdict: "yes"},

		row{who: "errand itself, or a role alone", subject: errand, what: "without a sandbox", object: bare(), verdict: "yes"},
		row{who: "a token for some repositories", subject: token, what: "without a sandbox", object: bare(), verdict: "yes, to read: " + sandbox},
		row{who: "an account", subject: ann, what: "without a sandbox, where it may read everything", object: bare(reads, open), verdict: "yes"},
		row{who: "an account", subject: ann, what: "without a sandbox, beside a repository that it may not read", object: bare(reads, closed), verdict: "yes, to read: " + sandbox},
		row{who: "an account", subject: ann, what: "without a sandbox, with nothing under `repositories:`", object: bare(), verdict: "yes, to read: " + sandbox},
		row{who: "an account", subject: ann, what: "to read, without a sandbox", object: Object{Repos: []Repo{reads}, Unsandboxed: true}, verdict: "yes, to read: may read acme/api but not write to it"},
		row{who: "account unknown", subject: nobody, what: "without a sandbox, with open repositories only", object: Object{Repos: []Repo{{}}, Writes: true, Unsandboxed: true, Machine: []Repo{open}}, set: "`unmapped: read`", posture: read, verdict: "yes, to read: " + sandbox},
		row{who: "account unknown", subject: nobody, what: "without a sandbox", object: bare(), set: "`unmapped: all`", posture: all, verdict: "yes"},
	),
	group("answer a run's question", Steer,
		row{who: "an account", subject: ann, what: "that may do what the run may", object: run(writes), verdict: "yes"},
		row{who: "an account", subject: ann, what: "that may read, to a run that only reads", object: Object{Repos: []Repo{reads}}, verdict: "yes, to read"},
		row{who: "an account", subject: ann, what: "that may read", object: run(reads, Repo{Name: "acme/web", Writes: true}), verdict: "no: Only people who may write in acme/api and acme/web can answer this."},
		row{who: "an account", subject: ann, what: "that has no access", object: run(closed), verdict: "no: ann has no access to acme/web."},
		row{who: "account unknown", subject: nobody, what: "a repository", object: run(closed), set: "`unmapped: read`", posture: read, verdict: "no: " + unknown1},
		row{who: "errand itself, or a role alone", subject: errand, what: "any repository", object: run(closed), verdict: "yes"},
		row{who: "an account", subject: ann, what: "without a sandbox, where it may read everything", object: bare(writes), verdict: "yes"},
		row{who: "an account", subject: ann, what: "without a sandbox, beside a repository that it may not read", object: bare(closed), verdict: "no: " + steering},
		row{who: "a token for some repositories", subject: token, what: "without a sandbox", object: bare(), verdict: "no: " + steering},
	),
	group("mark a draft as ready", MarkReady,
		row{who: "an account", subject: ann, what: "that may write", object: Object{Repos: []Repo{writes}}, verdict: "yes"},
		row{who: "an account", subject: ann, what: "that may read, of their own task", object: Object{Repos: []Repo{reads}, Own: true}, verdict: "no: " + NotYours},
		row{who: "an account", subject: ann, what: "that has no access", object: Object{Repos: []Repo{closed}}, verdict: "no: ann has no access to acme/web."},
		row{who: "account unknown", subject: nobody, what: "of their own task", object: Object{Repos: []Repo{closed}, Own: true}, set: "`unmapped: all`", posture: all, verdict: "yes"},
		row{who: "account unknown", subject: nobody, what: "of another's task", object: Object{Repos: []Repo{closed}}, set: "`unmapped: all`", posture: all, verdict: "no: " + NotYours},
		row{who: "account unknown", subject: nobody, what: "of their own task", object: Object{Repos: []Repo{closed}, Own: true}, set: "`unmapped: read`", posture: read, verdict: "no: " + unknown1},
	),
	group("have results posted in a channel", Announce,
		row{who: "errand itself", subject: errand, what: "of a public repository", object: Object{Repos: []Repo{writes}}, verdict: "yes"},
		row{who: "errand itself", subject: errand, what: "of an open repository", object: Object{Repos: []Repo{open}}, verdict: "yes"},
		row{who: "errand itself", subject: errand, what: "of a private repository", object: Object{Repos: []Repo{private}}, set: "`unmapped: all`", posture: all, verdict: "no: " + elsewhere},
		row{who: "errand itself", subject: errand, what: "of a private repository that the channel lists", object: Object{Repos: []Repo{{Name: "acme/api", Private: true, Listed: true}}}, verdict: "yes"},
	),
	group("have something done on GitHub", Request,
		row{who: "an account", subject: ann, what: "that may write", object: Object{Repos: []Repo{writes}}, verdict: "yes"},
		row{who: "an account", subject: ann, what: "that may read", object: Object{Repos: []Repo{reads}}, verdict: "no: ann has no write access to acme/api."},
		row{who: "an account", subject: ann, what: "that GitHub does not know", object: Object{Repos: []Repo{unseen}}, verdict: "no: ann has no write access to acme/api."},
		row{who: "a bot", subject: robot, what: "that GitHub does not know as an account", object: Object{Repos: []Repo{unseen}}, verdict: "no: ci[bot] has no write access to acme/api."},
		row{who: "a listed bot", subject: friend, what: "that GitHub does not know as an account", object: Object{Repos: []Repo{unseen}}, verdict: "yes"},
		row{who: "a listed bot", subject: friend, what: "that may read", object: Object{Repos: []Repo{reads}}, verdict: "no: ci[bot] has no write access to acme/api."},
	),
	group("be heard on GitHub", Ask,
		row{who: "an account", subject: Subject{Name: "ann", Member: true}, object: Object{Takes: true}, verdict: "yes"},
		row{who: "a bot", subject: robot, object: Object{Takes: true}, verdict: "no"},
		row{who: "a listed bot", subject: friend, object: Object{Takes: true}, verdict: "yes"},
	),
	group("answer, stop, approve or begin work on GitHub", Command,
		row{who: "an account", subject: ann, what: "that may write", object: Object{Repos: []Repo{writes}}, verdict: "yes"},
		row{who: "an account", subject: ann, what: "that may read", object: Object{Repos: []Repo{reads}}, verdict: "no: ann has no write access to acme/api."},
		row{who: "a listed bot", subject: friend, what: "that may write", object: Object{Repos: []Repo{writes}}, verdict: "no: Only people may do this."},
	),
	group("work in a pull request from a fork", Fork,
		row{who: "an account", subject: ann, what: "a review of a head that a person with write access has approved", object: Object{Approved: true}, verdict: "yes"},
		row{who: "an account", subject: ann, what: "a review of another head", posture: Posture{Label: "errand"}, verdict: "no: The pull request comes from a fork. A person with write access has to comment /review or add the label errand after each push."},
		row{who: "an account", subject: ann, what: "a review that it asks for, and the fork has been pushed to since", object: Object{Approved: true, Moved: true}, verdict: "no: The head of the pull request has moved since you wrote that. Look at the new head and repeat the command."},
		row{who: "an account", subject: ann, what: "a change", object: Object{Approved: true, Writes: true}, verdict: "no: The branch is in a fork, and I only change branches of this repository. I can review it."},
		row{who: "a listed bot", subject: friend, what: "a review", object: Object{Approved: true}, verdict: "no: Only people can approve the review of a fork."},
	),
	group("link an account in Slack", Link,
		row{who: "an account", subject: ann, what: "that is linked to no other one", verdict: "yes"},
		row{who: "an account", subject: ann, what: "that is linked to another one", object: Object{LinkedTo: "bob (U1)"}, verdict: "no: ann is linked to the account bob (U1) in Slack. Say /errand unlink there first, or ask an operator."},
		row{who: "an account", subject: ann, what: "one of which the operator has set for another one", object: Object{Mapped: true}, verdict: "no: An operator has set another account for one of the two under people: in errand.yaml."},
	),
	group("ask in Slack", Ask,
		row{who: "a member", subject: Subject{Member: true}, what: "in a channel where people may ask", object: Object{Takes: true}, verdict: "yes"},
		row{who: "a member", subject: Subject{Member: true}, what: "in another channel", verdict: "no: I do not take requests in this channel." + change},
		row{who: "a listed person", subject: Subject{Listed: true}, what: "in another channel", verdict: "no: I do not take requests in this channel." + change},
		row{who: "a guest", subject: Subject{Member: true, Guest: true}, object: Object{Takes: true}, verdict: "no: I do not take requests from guests." + change},
		row{who: "a stranger", object: Object{Takes: true}, verdict: "no: I only take requests from members of this workspace." + change},
		row{who: "a stranger", object: Object{Takes: true}, set: "`teams:`", posture: Posture{Teams: true}, verdict: "no: I do not take requests from members of your workspace." + change},
		row{who: "a listed guest", subject: Subject{Listed: true, Guest: true}, object: Object{Takes: true}, set: "`people:`", posture: Posture{People: true}, verdict: "yes"},
		row{who: "a member", subject: Subject{Member: true}, object: Object{Takes: true}, set: "`people:`", posture: Posture{People: true}, verdict: "no: You are not on the list of people who can ask me." + change},
		row{who: "a member", subject: Subject{Member: true}, object: Object{Takes: true}, set: "`people:`, `teams:`", posture: Posture{People: true, Teams: true}, verdict: "yes"},
		row{who: "a bot", subject: Subject{Bot: true, Member: true}, object: Object{Takes: true}, verdict: "no"},
		row{who: "a listed bot", subject: Subject{Bot: true, Listed: true}, object: Object{Takes: true}, verdict: "yes"},
		row{who: "a listed bot", subject: Subject{Bot: true, Listed: true}, what: "in another channel", verdict: "no"},
	),
	group("see a task at the console or by the API", See,
		row{who: "a viewer", subject: viewer, what: "in a repository of theirs", object: at(Viewer), verdict: "yes"},
		row{who: "a viewer", subject: viewer, what: "in another repository", object: at(Anyone), verdict: "no, and does not see it"},
		row{who: "a viewer", subject: viewer, what: "in two repositories, one of which is theirs", object: at(Viewer, Anyone), verdict: "no, and does not see it"},
		row{who: "a viewer", subject: viewer, what: "in a repository of theirs that GitHub does not let them read", object: Object{Repos: []Repo{{Name: "acme/web", Role: Viewer, Barred: true}}}, verdict: "no, and does not see it"},
		row{who: "a viewer of some repositories", subject: viewer, what: "outside of repositories", object: Object{Repos: []Repo{{}}}, verdict: "no, and does not see it"},
		row{who: "a viewer of some repositories", subject: viewer, what: "their own, outside of repositories", object: Object{Repos: []Repo{{}}, Own: true}, verdict: "yes"},
		row{who: "a guest", subject: Subject{Role: Guest}, what: "that the signed link names", object: Object{Repos: []Repo{{Name: "acme/api", Role: Guest}}, Linked: true}, verdict: "yes"},
		row{who: "a guest", subject: Subject{Role: Guest}, what: "another one", object: at(Guest), verdict: "no, and does not see it"},
	),
	group("answer a question there", Use,
		row{who: "a user", subject: user, object: at(User), verdict: "yes"},
		row{who: "a viewer", subject: viewer, object: at(Viewer), verdict: "no: This needs the role user. Your role here is viewer."},
		row{who: "a guest", subject: Subject{Role: Guest}, what: "of the task that the signed link names", object: Object{Repos: []Repo{{Name: "acme/api", Role: Guest}}, Linked: true}, verdict: "no: This needs the role user. Your role here is guest."},
	),
	group("stop a task there", Stop,
		row{who: "an operator", subject: operator, object: at(Operator), verdict: "yes"},
		row{who: "a user", subject: user, what: "that they asked for", object: Object{Repos: at(User).Repos, Own: true}, verdict: "yes"},
		row{who: "a user", subject: user, what: "of another person", object: at(User), verdict: "no: You may do this only with tasks that you asked for. An operator may do it with all."},
		row{who: "a viewer", subject: viewer, what: "that they asked for", object: Object{Repos: at(Viewer).Repos, Own: true}, verdict: "no: This needs the role operator. Your role here is viewer."},
	),
	group("take a task over there", Take,
		row{who: "an operator", subject: operator, object: at(Operator), verdict: "yes"},
		row{who: "a user", subject: user, what: "that they asked for", object: Object{Repos: at(User).Repos, Own: true}, verdict: "yes"},
		row{who: "a user", subject: user, what: "of another person", object: at(User), verdict: "no: You may do this only with tasks that you asked for. An operator may do it with all."},
		row{who: "an operator", subject: operator, what: "after work in a repository that they do not see", object: Object{Repos: at(Operator).Repos, Past: []Repo{{Name: "acme/web"}}}, verdict: "no: This conversation has been about a repository that you may not see."},
		row{who: "a user", subject: user, what: "that they asked for, after work that is not known", object: Object{Repos: at(User).Repos, Own: true, Forgotten: true}, verdict: "no: I no longer know which repositories this conversation has been about."},
	),
	group("approve a tool call there", Approve,
		row{who: "a user", subject: user, what: "of a task that they asked for", object: Object{Repos: at(User).Repos, Own: true}, verdict: "yes"},
		row{who: "an agent of an admin, by MCP", subject: Subject{Role: Admin, Bot: true}, object: at(Admin), verdict: "no: A person has to decide about this tool call, where the task was asked for or at the console."},
	),
	group("retry a task there, or change what runs", Operate,
		row{who: "an operator", subject: operator, object: at(Operator), verdict: "yes"},
		row{who: "an operator of some repositories", subject: operator, what: "of another person, outside of repositories", object: Object{Repos: []Repo{{}}}, verdict: "no, and does not see it"},
		row{who: "a user", subject: user, what: "that they asked for", object: Object{Repos: at(User).Repos, Own: true}, verdict: "no: This needs the role operator. Your role here is user."},
		row{who: "a user", subject: user, what: "that they asked for, outside of repositories", object: Object{Repos: []Repo{{}}, Own: true}, verdict: "no: This needs the role operator for all repositories. Your role here is user."},
	),
	group("start a task there", Start,
		row{who: "a user", subject: user, what: "in a repository of theirs", object: at(User), verdict: "yes"},
		row{who: "a user of some repositories", subject: user, what: "in two, one of which is not theirs", object: at(User, Viewer), verdict: "no: You may not start tasks in acme/web."},
		row{who: "a user of some repositories", subject: user, what: "outside of repositories", object: Object{Repos: []Repo{{}}}, verdict: "yes"},
		row{who: "a user of some repositories", subject: user, what: "in a directory", object: Object{Repos: []Repo{{}}, Directory: true}, verdict: "no: You may not start tasks outside of repositories."},
		row{who: "a viewer", subject: viewer, what: "outside of repositories", object: Object{Repos: []Repo{{}}}, verdict: "no: You may not start tasks outside of repositories."},
		row{who: "a viewer", subject: viewer, what: "wherever it is", verdict: "no: You may not start tasks."},
		row{who: "a user", subject: user, what: "after work that they may see", object: Object{Repos: at(User).Repos, Past: at(Viewer).Repos}, verdict: "yes"},
		row{who: "a user", subject: user, what: "after work that they may not see", object: Object{Repos: at(User).Repos, Past: at(Viewer, Anyone).Repos}, verdict: "no: " + continued},
		row{who: "a user", subject: user, what: "after a task that they may not see", object: Object{Repos: at(User).Repos, Unseen: true}, verdict: "no: " + continued},
		row{who: "a user", subject: user, what: "after work of others outside of repositories", object: Object{Repos: at(User).Repos, Past: []Repo{{}}}, verdict: "no: " + continued},
		row{who: "a user", subject: user, what: "after work of theirs outside of repositories", object: Object{Repos: at(User).Repos, Past: []Repo{{}}, Own: true}, verdict: "yes"},
		row{who: "a user", subject: user, what: "after work that is not known", object: Object{Repos: at(User).Repos, Forgotten: true}, verdict: "no: " + Forgotten},
	),
	group("stop a task in Slack, retry it, approve its tool calls", Control,
		row{who: "who asked for it", object: Object{Own: true}, verdict: "yes"},
		row{who: "an approver", subject: Subject{Approver: true}, verdict: "yes"},
		row{who: "another person", subject: Subject{Member: true}, verdict: "no: " + NotYours},
	),
)

// TestTable decides every row, and compares the rows with those of docs/access.md.
func TestTable(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, r := range table {
		v := Decide(r.subject, r.action, r.object, r.posture)
		verdict := map[Verdict]string{
			{Allowed: true}: "yes", {Allowed: true, Reads: true}: "yes, to read", {}: "no",
			{Hidden: true}: "no, and does not see it",
		}[Verdict{v.Allowed, v.Reads, v.Hidden, ""}]
		if v.Reason != "" && !v.Hidden {
			verdict += ": " + v.Reason
		}
		if verdict != r.verdict {
			t.Errorf("%s, %s, %s, %s: %s, want %s", r.who, r.does, r.what, r.set, verdict, r.verdict)
		}
		want.WriteString("| " + strings.Join([]string{r.does, r.who, r.what, r.set, verdict}, " | ") + " |\n")
	}
	compare(t, "../../docs/access.md", "| to | who | where | `slack:` has | may |\n|---|---|---|---|---|\n",
		want.String())
}
