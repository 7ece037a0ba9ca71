package policy

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into docs/security.md")

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

	writes, reads     = Repo{Name: "acme/api", Writes: true}, Repo{Name: "acme/api", Reads: true}
	closed, open      = Repo{Name: "acme/web", Private: true}, Repo{Name: "acme/web", Private: true, Open: true}
	private, private2 = Repo{Name: "acme/api", Writes: true, Private: true}, Repo{Name: "acme/web", Writes: true, Private: true}

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

const (
	unknown1  = "I do not know your account on GitHub, so I cannot see what you may do in acme/web. An operator can add you under people: in errand.yaml."
	mayNot    = "This thread has been about a repository that you may not read. Start a new one."
	elsewhere = "acme/api is private, and its answers may not be posted in this channel. Ask me in a direct message, or have an operator add the channel under channels: in errand.yaml."
	together  = "This conversation has been about a repository that is not public, and an answer or a pull request in acme/api could show what is in it. Ask in a conversation of its own."
	sandbox   = "may not read every repository that errand works on, and this worker has no sandbox that would keep commands away from the others. An operator can enable it (ERRAND_SANDBOX)"
	steering  = "The worker has no sandbox, so only people who may read every repository that errand works on can answer this."
	change    = " An operator can change that."
)

// table is the policy. docs/security.md shows it.
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
		row{who: "errand itself, or a role alone", subject: errand, what: "a public and a private repository together", object: run(writes, private2), verdict: "no: acme/api is public and acme/web is not, and pull requests in the one could show what is in the other. Ask for each in a conversation of its own."},
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
	group("stop a task in Slack, retry it, approve its tool calls", Control,
		row{who: "who asked for it", object: Object{Own: true}, verdict: "yes"},
		row{who: "an approver", subject: Subject{Approver: true}, verdict: "yes"},
		row{who: "another person", subject: Subject{Member: true}, verdict: "no: " + NotYours},
	),
)

// TestTable decides every row, and compares the rows with those of docs/security.md.
func TestTable(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, r := range table {
		v := Decide(r.subject, r.action, r.object, r.posture)
		verdict := map[Verdict]string{
			{Allowed: true}: "yes", {Allowed: true, Reads: true}: "yes, to read", {}: "no",
		}[Verdict{v.Allowed, v.Reads, ""}]
		if v.Reason != "" {
			verdict += ": " + v.Reason
		}
		if verdict != r.verdict {
			t.Errorf("%s, %s, %s, %s: %s, want %s", r.who, r.does, r.what, r.set, verdict, r.verdict)
		}
		want.WriteString("| " + strings.Join([]string{r.does, r.who, r.what, r.set, verdict}, " | ") + " |\n")
	}
	const file, head = "../../docs/security.md", "| to | who | where | `slack:` has | may |\n|---|---|---|---|---|\n"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), head)
	got, after, _ := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatal("docs/security.md has no table of the policy")
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+head+want.String()+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got+"\n" != want.String() {
		t.Error("docs/security.md shows another table: run go test ./tasks/policy -update")
	}
}
