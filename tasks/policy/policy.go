// Package policy decides who may do what, where. [Decide] is a pure function: desk and sources collect the facts for it
// and turn its verdicts into errors. docs/access.md has a table of what it decides.
package policy

import (
	"fmt"
	"strings"
)

// Decide returns whether somebody may do something, and why not.
func Decide(s Subject, a Action, o Object, p Posture) Verdict {
	s.Unlimited = s.Unlimited || s.Name == "" && p.Unmapped == UnmappedAll
	return a(s, o, p)
}

// Verdict is what was decided.
type Verdict struct {
	Allowed bool
	Reads   bool // allowed, but only to read, which is less than was asked for
	Hidden  bool // not allowed, and they do not see what the action is about
	// Reason tells the person in sentences why they may not, or in a clause about them why they may only read. It is
	// empty if they get no answer.
	Reason string
}

var allowed = Verdict{Allowed: true}

func no(reason string, args ...any) Verdict { return Verdict{Reason: fmt.Sprintf(reason, args...)} }

// Action is the rule for what somebody wants to do.
type Action func(Subject, Object, Posture) Verdict

// Subject is who acts. What does not matter for an action can be left out, here and below.
type Subject struct {
	Name string // of their account on the forge; empty: not known
	ID   int64  // that the account had when they linked it; 0: they have not

	Role Role // the highest that they have anywhere at the front door

	Unlimited bool // what they may do does not depend on an account on the forge
	Partial   bool // it depends on a role that is for some repositories only

	Listed   bool // the operator has named them as one who may ask
	Bot      bool
	Guest    bool // in a chat
	Member   bool // of a workspace whose members may ask
	Approver bool // the operator lets them control all tasks
}

// Repo is a repository, and what the forge says about the subject's account there.
type Repo struct {
	Name    string // empty: work without a repository
	Reads   bool   // the account may read
	Writes  bool   // it may read and write
	Missing bool   // there is no such account or repository
	ID      int64  // of the account

	Role   Role // that the subject was given there
	Barred bool // the forge does not let them read it, whatever their role is

	Open    bool // people whose account is not known may have it read
	Private bool
	Listed  bool // the operator permits answers about it in the channel
}

// Object is what an action is about.
type Object struct {
	Repos     []Repo // that it belongs to
	Own       bool   // the subject asked for it
	Past      []Repo // other repositories that the conversation has been about
	Forgotten bool   // that is not known
	Unseen    bool   // the conversation has tasks that the subject does not see
	Directory bool   // outside of repositories it is in a directory of the machine
	Linked    bool   // the subject has opened a signed link to the task

	Writes      bool   // the run may write
	Public      bool   // it is answered where the repository is
	Channel     bool   // it is answered in a channel, not in a direct message
	Takes       bool   // people may ask in the channel
	Unsandboxed bool   // its commands can read what is on the worker
	Machine     []Repo // what is on the worker; nil: it could be anything

	Approved bool // somebody has approved the head of the fork, or does so by what they ask for
	Moved    bool // the fork may have got another head since the request

	Mapped   bool   // the operator has set another account for one of the two that are linked
	LinkedTo string // the account in the chat that has been linked
}

// names returns the names of the repositories.
func (o Object) names(separator string) string {
	var names []string
	for _, r := range o.Repos {
		names = append(names, r.Name)
	}
	return strings.Join(names, separator)
}

// Posture is what the operator has set.
type Posture struct {
	Unmapped Unmapped // what people in chats may do whose account is not known
	Links    bool     // people may link their account to the one on the forge
	People   bool     // people who may ask in a chat are listed
	Teams    bool     // workspaces whose members may are listed
	Label    string   // that approves a fork
}

// Unmapped is what people in chats may do whose account on the forge is not known.
type Unmapped string

// The values of Unmapped.
const (
	UnmappedAll    Unmapped = "all"    // everything; answers about private repositories may be posted anywhere
	UnmappedRead   Unmapped = "read"   // read open repositories, and work without a repository
	UnmappedRefuse Unmapped = "refuse" // nothing
)
