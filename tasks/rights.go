package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
)

// Rights limits people to what they may do themselves on the forge: a request runs with the rights of its asker in the
// repository. The forge is asked just before a run starts, before a run takes up a message, and for each answer to a
// question, so that a permission counts as it is then. GitHub's own requests are checked in their briefs, because the
// source knows which of them a person has made; only what their conversation has been about is checked here.
type Rights struct {
	Forge    Permissions // nil: there are no limits
	Unmapped Unmapped    // what people in Slack may do whose account on the forge is unknown
	Links    bool        // people may link their account in Slack to one on the forge; see Link
	// Lists reports whether the operator permits answers about a private repository in a Slack channel.
	Lists func(channel, repo string) bool
}

// Permissions is the part of a [forge.Forge] that Rights needs.
type Permissions interface {
	Name() string
	Permission(ctx context.Context, repo, login string) (forge.Permission, error)
	AccountID(ctx context.Context, repo, login string) (int64, error)
	Private(ctx context.Context, repo string) (bool, error)
}

// Unmapped is what people in Slack may do whose account on the forge is unknown.
type Unmapped string

// The values of Unmapped.
const (
	UnmappedAll    Unmapped = "all"    // everything; answers about private repositories may be posted anywhere
	UnmappedRead   Unmapped = "read"   // read open repositories, and work without a repository
	UnmappedRefuse Unmapped = "refuse" // nothing
)

// Asker is who asks for something: an account in a source.
type Asker struct {
	Source  string `json:"source"`
	Account string `json:"account"`
	Login   string `json:"login,omitempty"` // on the forge, if the front door knows it
	ID      int64  `json:"-"`               // that Login's account had when the person linked it; 0: no link is in use
	// Partial means that their role at the front door holds in some repositories only, and that Login does not say
	// what they may do elsewhere.
	Partial bool `json:"partial,omitempty"`
}

// The sources whose accounts Rights knows by name.
const (
	slackSource = "slack"
	forgeSource = "github"
	chatSource  = "chat"
)

// askedBy returns who asked for a task: the person who retried it, or its author.
func (t Task) askedBy() Asker {
	if t.Retrier != (Asker{}) {
		return t.Retrier
	}
	return Asker{Source: t.Source, Account: t.Actor, Login: t.Login, Partial: t.Partial}
}

// askerIn returns who acts in a context, or the zero value if errand itself does.
func askerIn(ctx context.Context) Asker {
	if a, ok := ctx.Value(senderKey{}).(*acting); ok {
		return Asker{Source: a.Source, Account: a.Account}
	}
	if v, ok := ctx.Value(visitorKey{}).(*Visitor); ok {
		return Asker{Source: chatSource, Account: Actor(ctx), Login: v.Login, Partial: v.Partial()}
	}
	return Asker{}
}

// Permit returns the profile with which a task may run now. An *InputError refuses the task. After any other error
// nothing is known, so the task must not run.
func (p Policy) Permit(ctx context.Context, s *store.Store, t Task) (agent.Profile, error) {
	if p.Rights == nil || p.Rights.Forge == nil {
		return t.Profile, nil
	}
	by, limited, err := p.limits(ctx, s, t.askedBy())
	others := sync.OnceValues(func() ([]string, error) { return remembered(ctx, s, t) })
	switch {
	case err != nil:
	case by.Source == p.Rights.Forge.Name():
		if !t.unasked() {
			err = p.permitConversation(ctx, t, by, others)
		}
	case limited:
		if t.Profile, err = p.entitleAll(ctx, by, t); err == nil {
			err = p.permitThread(ctx, by, others)
		}
	}
	for _, repo := range t.Repositories() {
		if err == nil {
			err = p.permitChannel(ctx, t, repo)
		}
	}
	if err == nil {
		err = p.permitTogether(ctx, t, others)
	}
	if err != nil {
		return "", err
	}
	return t.Profile, nil
}

// PermitNow checks that the asker may let errand read the task's repository and post the answer where they asked.
func PermitNow(ctx context.Context, d *Desk, t Task) error {
	_, err := d.policy.Permit(ctx, d.store, t)
	return err
}

// limits returns a person with their account on the forge, and whether there is a limit to what they may do. People at
// the front door whose account is unknown have their role instead. In Slack, the operator's settings and the links of
// now count.
func (p Policy) limits(ctx context.Context, s *store.Store, by Asker) (_ Asker, limited bool, err error) {
	if p.Rights == nil || p.Rights.Forge == nil {
		return by, false, nil
	}
	name := p.Rights.Forge.Name()
	if by.Source == name {
		by.Login = by.Account
		return by, true, nil
	}
	if by.Source == slackSource {
		if by.Login, by.ID, err = p.linked(ctx, s, by.Account); err != nil {
			return by, false, err
		}
	}
	one, _ := p.People.Find(by.Source, by.Account)
	by.Login = cmp.Or(by.Login, one.Account(name))
	return by, by.Login != "" || by.Source == slackSource && p.Rights.Unmapped != UnmappedAll, nil
}

// entitle limits a profile to what a person may do in a repository; "" means work without one.
func (p Policy) entitle(ctx context.Context, by Asker, repo string, wanted agent.Profile) (agent.Profile, error) {
	unmapped := by.Source == slackSource && by.Login == ""
	if repo == "" && (!unmapped || p.Rights.Unmapped == UnmappedRead) {
		return wanted, nil
	}
	allowed, err := p.Allowed(repo)
	reads := Repository{Profile: agent.Read}.Narrow(wanted)
	open := err == nil && allowed.Open
	if unmapped {
		if open && p.Rights.Unmapped == UnmappedRead {
			return reads, nil
		}
		remedy := "An operator can add you under people: in errand.yaml."
		if p.Rights.Links {
			remedy = "Say /errand link to connect it."
		}
		return "", refusal("I do not know your account on GitHub, so I cannot see what you may do%s. %s",
			inRepo(repo), remedy)
	}
	level, err := p.Rights.Forge.Permission(ctx, repo, by.Login)
	if err == nil && by.ID != 0 {
		var id int64
		if id, err = p.Rights.Forge.AccountID(ctx, repo, by.Login); err == nil && id != by.ID {
			return "", refusal("%s is now the account of somebody else on GitHub. Say /errand link to connect yours.",
				by.Login)
		}
	}
	switch {
	case err != nil && !errors.Is(err, forge.ErrNotFound):
		return "", fmt.Errorf("check rights: %w", FromForge(err))
	case level.CanWrite():
		return wanted, nil
	case level == forge.PermissionRead, open:
		return reads, nil
	case err != nil && by.ID != 0:
		const sentence = "GitHub finds no account %s, or no repository %s. If you have renamed your account, say " +
			"/errand link."
		return "", refusal(sentence, by.Login, repo)
	}
	return "", refusal("%s has no access to %s.", by.Login, repo)
}

// permitChannel refuses a request in Slack about a repository whose answers must not be posted where it was made.
// Retries elsewhere are answered there, too.
func (p Policy) permitChannel(ctx context.Context, t Task, repo string) error {
	if t.Source != slackSource || p.Rights.Unmapped == UnmappedAll || strings.HasPrefix(t.Channel, "D") {
		return nil
	}
	may, err := p.MayPost(ctx, t.Channel, repo)
	if err == nil && !may {
		err = refusal("%s is private, and its answers may not be posted in this channel. Ask me in a direct message, "+
			"or have an operator add the channel under channels: in errand.yaml.", repo)
	}
	return err
}

// MayPost reports whether answers about a repository, or about none, may be posted in a Slack channel.
func (p Policy) MayPost(ctx context.Context, channel, repo string) (bool, error) {
	if repo == "" || p.Rights == nil || p.Rights.Forge == nil || p.Rights.Lists(channel, repo) {
		return true, nil
	}
	if allowed, err := p.Allowed(repo); err == nil && allowed.Open {
		return true, nil
	}
	private, err := p.Rights.Forge.Private(ctx, repo)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return false, fmt.Errorf("check channel: %w", FromForge(err))
	}
	return err == nil && !private, nil
}

// Conversation is what Rights must know about a session. The worker stores it in the notes of the session.
type Conversation struct {
	// Repos are the repositories that its runs have worked in; "" means work without one. Nil: they are not known.
	Repos []string `json:"repos"`
}

var errUnknownThread = errors.New("the repositories of the thread are not known")

// conversation returns what is known of the session of a thread, and an *InputError if its repositories are not known.
func conversation(ctx context.Context, s *store.Store, thread string) (past Conversation, err error) {
	notes, err := s.Threads.SessionMeta(ctx, thread)
	if errors.Is(err, store.ErrNotFound) {
		return past, nil
	}
	if err == nil && (json.Unmarshal(notes, &past) != nil || past.Repos == nil) {
		err = errors.Join(errUnknownThread,
			refusal("I no longer know which repositories this thread has been about. Start a new one."))
	}
	return past, err
}

// permitThread refuses a task that continues a conversation about a repository that its asker may not read: the agent
// remembers what it has read there. The refusal does not name the repository, because the request may be in a public
// pull request. others returns what [remembered] does.
func (p Policy) permitThread(ctx context.Context, by Asker, others func() ([]string, error)) error {
	known, err := others()
	if err != nil {
		return err
	}
	for _, repo := range known {
		_, err := p.entitle(ctx, by, repo, agent.Read)
		if _, refused := errors.AsType[*InputError](err); refused {
			return refusal("This thread has been about a repository that you may not read. Start a new one.")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unasked reports whether no person has asked for a task, or for it to be retried.
func (t Task) unasked() bool { return t.Unasked && t.Retrier == (Asker{}) }

// Apart reports whether a task has to begin a conversation of its own: no person has asked for it whose rights could be
// checked, and the conversation of its thread has been about other repositories, or it is not known about which.
func (p Policy) Apart(ctx context.Context, s *store.Store, t Task) (bool, error) {
	if p.Rights == nil || p.Rights.Forge == nil || !t.unasked() {
		return false, nil
	}
	others, err := remembered(ctx, s, t)
	if errors.Is(err, errUnknownThread) {
		return !strings.HasPrefix(t.Thread, t.Source+"/"), nil
	}
	return len(others) > 0, err
}

// remembered returns the other repositories that the conversation of a task's thread has been about.
func remembered(ctx context.Context, s *store.Store, t Task) ([]string, error) {
	past, err := conversation(ctx, s, t.Thread)
	return slices.DeleteFunc(past.Repos, func(repo string) bool { return repo == "" || t.Has(repo) }), err
}

// permitAnswer checks that the person who answers a question of a task may do what the run that asked it may do.
func (p Policy) permitAnswer(ctx context.Context, s *store.Store, id string, q Question) error {
	by, limited, err := p.limits(ctx, s, askerIn(ctx))
	if err != nil {
		return err
	}
	if q.Unsandboxed {
		all, err := p.readsAll(ctx, by, limited)
		if err != nil {
			return err
		}
		if !all {
			return refusal("The worker has no sandbox, so only people who may read every repository that errand " +
				"works on can answer this.")
		}
	}
	if !limited {
		return nil
	}
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	t, err := ReadTask(rec)
	if err != nil {
		return err
	}
	needed := cmp.Or(q.Profile, t.Profile)
	t.Profile = needed
	profile, err := p.entitleAll(ctx, by, t)
	if err == nil && profile != needed {
		err = refusal("Only people who may write%s can answer this.", inRepo(strings.Join(t.Repositories(), " and ")))
	}
	return err
}

// MayWrite reports whether a person may ask errand to change a repository. The error may be an *InputError. limited is
// false if nothing limits the person, whose source then decides.
func MayWrite(ctx context.Context, d *Desk, by Asker, repo string) (may, limited bool, err error) {
	by, limited, err = d.policy.limits(ctx, d.store, by)
	if err != nil || !limited {
		return false, false, err
	}
	profile, err := d.policy.entitle(ctx, by, repo, agent.Write)
	return profile == agent.Write, true, err
}

// refusal returns the error for what a person may not do.
func refusal(sentence string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, &InputError{Sentence: fmt.Sprintf(sentence, args...)})
}

// inRepo names a repository after a verb; empty for work without one.
func inRepo(repo string) string {
	if repo == "" {
		return ""
	}
	return " in " + repo
}
