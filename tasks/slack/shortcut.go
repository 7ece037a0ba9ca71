package slack

import (
	"context"
	"errors"
	"strings"

	"github.com/errand-fleet/errand/tasks/slack/render"
)

// openAskDialog opens the dialog for a request about the message whose shortcut was chosen. People who may not ask get
// the reason instead.
func (b *buttons) openAskDialog(ctx context.Context, p press) (string, error) {
	err := b.interpreter.mayAsk(ctx, p.origin)
	if why, ok := errors.AsType[forbidden](err); ok {
		return string(why), nil
	}
	if err != nil {
		return "", err
	}
	return "", b.openDialog(ctx, p, render.AskDialog)
}

// ask starts the task of a submitted dialog in the thread of the message that it is about.
func (b *buttons) ask(ctx context.Context, p press) (string, error) {
	text := strings.TrimSpace(p.detail)
	if text == "" {
		return "", nil
	}
	o := origin{
		Channel: p.origin.Channel, ThreadTS: p.origin.root(), User: p.origin.User, About: p.origin.TS,
	}
	return b.interpreter.ask(ctx, o, text)
}
