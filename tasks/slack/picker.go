package slack

import (
	"context"
	"fmt"

	"github.com/slack-go/slack"
)

// What is said about the repository of a request.
const (
	which     = "Which repository is this about?"
	otherwise = "If that is wrong, say `stop` in the thread and ask again with [repo=owner/name] at the start."
)

// begun says where a request is worked on.
func begun(repo string) string {
	if repo == "" {
		return "I work on this without a repository."
	}
	return "I work on this in " + repo + "."
}

// maxOptions is how many repositories a menu offers, besides none at all; Slack takes 100 options.
const maxOptions = 99

// picker is the menu of repositories, in mrkdwn and blocks.
func picker(r shelved) (text string, blocks []slack.Block) {
	text = which
	if r.Favourite != "" {
		text += fmt.Sprintf(" I take *%s*, which was the last one here, unless you choose another within a minute.", escape(r.Favourite))
	}
	offered := r.Candidates[:min(len(r.Candidates), maxOptions)]
	if len(offered) < len(r.Candidates) {
		text += " If it is not in the list, ask again with [repo=owner/name] at the start."
	}
	plain := func(s string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, cut(s, maxButton), false, false)
	}
	var options []*slack.OptionBlockObject
	for _, repo := range offered {
		options = append(options, slack.NewOptionBlockObject(repo, plain(repo), nil))
	}
	options = append(options, slack.NewOptionBlockObject(none, plain("No repository"), nil))
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Choose a repository"), pickRepository, options...)
	return text, []slack.Block{
		slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, text, false, false), nil, nil),
		slack.NewActionBlock(pickRepository+"/"+r.Task.ID, menu),
	}
}

// showPicker shows it to who asked alone. Where Slack does not allow that, he is told what to do instead.
func (s *Source) showPicker(ctx context.Context, o origin, r shelved) {
	text, blocks := picker(r)
	opts := []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionBlocks(blocks...)}
	if o.ThreadTS != "" {
		opts = append(opts, slack.MsgOptionTS(o.ThreadTS))
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := s.api.PostEphemeralContext(call, o.Channel, o.User, opts...); err != nil && ctx.Err() == nil {
		s.log.Warn("show repositories", "run", r.Task.ID, "err", err)
		s.tell(ctx, o, undecidedSentence(r.Candidates))
	}
}

// answerPicker puts the choice in the menu's place. Only the address that came with the choice can do that.
func (s *Source) answerPicker(ctx context.Context, p press, repo string) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text := slack.MsgOptionText(escape(begun(repo)), false)
	_, _, _, err := s.api.SendMessageContext(ctx, p.origin.Channel, slack.MsgOptionReplaceOriginal(p.respond), text)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("put away repositories", "run", p.block, "err", unaddressed(err))
	}
}
