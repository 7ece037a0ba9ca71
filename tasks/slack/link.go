package slack

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
)

// noLinks says that people cannot link their account by themselves.
const noLinks = "Linking is not available here. Ask an operator to add you under people: in errand.yaml."

// linkHelp follows help where people can link their account.
const linkHelp = " /errand link gives your requests your rights on GitHub, and /errand unlink ends that."

// helpText answers the command help.
func (in *interpreter) helpText() string {
	if in.linkURL == "" {
		return help
	}
	return help + linkHelp
}

// link offers a person to link their account to one on the forge, and returns where they confirm that.
func (in *interpreter) link(ctx context.Context, o origin) (sentence string, err error) {
	if in.linkURL == "" {
		return noLinks, nil
	}
	err = in.mayAsk(ctx, o)
	if why, ok := errors.AsType[forbidden](err); ok {
		return string(why), nil
	}
	if err != nil {
		return "", err
	}
	me, err := in.me.get(ctx)
	if err != nil {
		return "", err
	}
	offer := people.Link{User: o.User, Name: in.displayName(ctx, o.User)}
	if offer.Name == "" { // the page where they confirm has to name them
		return tryLater, nil
	}
	u, err := in.people.get(ctx, o.User)
	if err != nil {
		return "", err
	}
	if offer.Team = u.TeamID; offer.Team == me.team {
		offer.Site = me.site
	}
	var code string
	err = in.desk.As(ctx, in.sender(o.User), "offer link", "", func(ctx context.Context) (changed bool, err error) {
		code, err = in.desk.OfferLink(ctx, offer)
		return true, err
	})
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		return input.Sentence, nil
	}
	return "Open this address within 10 minutes and log in to GitHub. It is only for you, so do not share it. " +
		in.linkURL + "?code=" + code, err
}

// unlink removes the link of a person.
func (in *interpreter) unlink(ctx context.Context, user string) (sentence string, err error) {
	sentence = "Your account is not linked."
	err = in.desk.As(ctx, in.sender(user), "unlink", "", func(ctx context.Context) (found bool, err error) {
		if found, err = in.desk.Unlink(ctx, user); found {
			sentence = "Your account in Slack is no longer linked to your account on GitHub."
		}
		return found, err
	})
	return sentence, err
}
