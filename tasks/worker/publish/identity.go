package publish

import (
	"cmp"
	"context"
	"regexp"
	"strings"
	"unicode"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/workspace"
)

// account returns the login that the asker has at the forge, or "".
func (b *Publisher) account(t tasks.Task) string {
	if t.Source == b.Forge.Name() {
		if strings.HasSuffix(t.Actor, "[bot]") {
			return ""
		}
		return t.Actor
	}
	who, _ := b.Policy.People.Author(t)
	return cmp.Or(t.Login, who.Account(b.Forge.Name()))
}

// author returns errand's name and address in commits.
func (b *Publisher) author(ctx context.Context, repo string) string {
	if b.Author != "" {
		return b.Author
	}
	own, err := b.Forge.Address(ctx, repo, "")
	logline.Warn(b.Log, err, "look up errand's own account", "repo", repo)
	return cmp.Or(own, workspace.Unknown)
}

// Identities returns errand's name and address in commits, and those of the asker. The latter are empty if they are not
// known, or if errand itself asked. The operator's address of a person is only for those without an account at the
// forge: others may keep theirs private there. Without an answer of the forge the task still runs.
func (b *Publisher) Identities(ctx context.Context, t tasks.Task) (author, asker string) {
	author = b.author(ctx, t.Repo)
	who, _ := b.Policy.People.Author(t)
	address := who.Email
	if login := b.account(t); login != "" {
		found, err := b.Forge.Address(ctx, t.Repo, login)
		logline.Warn(b.Log, err, "look up the asker's account", "run", t.ID)
		own, _ := b.Forge.Address(ctx, t.Repo, "")
		if found != "" && found == own {
			return author, ""
		}
		_, address, _ = strings.Cut(strings.TrimSuffix(found, ">"), " <")
	}
	if address == "" {
		return author, ""
	}
	name := strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '<' || r == '>' {
			return -1
		}
		return r
	}, b.Policy.People.NameOf(t)))
	return author, cmp.Or(name, "unknown") + " <" + address + ">"
}

const (
	runTrailer   = "Errand-Run: "     // by which people find the run
	askerTrailer = "Co-authored-by: " // by which GitHub credits the asker
)

// Trailers returns the last lines of each commit message of a task's run, with the name and address of a co-author
// unless it is "".
func Trailers(t tasks.Task, coAuthor string) string {
	lines := runTrailer + t.ID
	if coAuthor != "" {
		lines += "\n" + askerTrailer + coAuthor
	}
	return lines
}

var (
	runLine     = regexp.MustCompile(`(?m)^` + runTrailer + `(\S+)[ \t]*$`)
	trailerForm = regexp.MustCompile(`\n\n([A-Za-z][A-Za-z0-9-]*: [^\n]+(\n|$))+$`)
)

// credit adds the asker to a commit message that lacks them, unless the commit is of another run.
func credit(message, run, asker string) string {
	_, address, _ := strings.Cut(asker, " <")
	if of := runLine.FindStringSubmatch(message); asker == "" || of != nil && of[1] != run ||
		strings.Contains(message, " <"+address) {
		return message
	}
	message = strings.TrimRight(message, "\n")
	if !trailerForm.MatchString(message) {
		message += "\n"
	}
	return message + "\n" + askerTrailer + asker + "\n"
}
