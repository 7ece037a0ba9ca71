package agent

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/transcript"
)

// says reports whether a conversation contains a text.
func says(s Session, text string) bool {
	a, err := transcript.Unpack(s.Data)
	return err == nil && bytes.Contains(a.Lines(), []byte(text))
}

// The CLI notes what it throws away when it is interrupted, by its ID. It is not in the conversation for that.
func TestCLIThrowsAwayWhatIsQueued(t *testing.T) {
	t.Parallel()
	model, post, asked := newModel(t), make(chan Message), make(chan struct{}, 2)
	h := &host{hand: func(ctx context.Context) (Message, bool) {
		asked <- struct{}{}
		select {
		case m := <-post:
			return m, true
		case <-ctx.Done():
			return Message{}, false
		}
	}}
	model.Answer("count", modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "mcp__errand__wait"}}})
	first, second := Message{
		ID: "0d9ee9d7-64ba-4a7c-a5a5-2b2d6d7a3f10", Text: "count",
	}, Message{ID: "0d9ee9d7-64ba-4a7c-a5a5-2b2d6d7a3f11", Text: "faster"}
	ctx, stop := context.WithCancelCause(t.Context())
	wait := NewTool("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		<-asked
		post <- second
		<-asked // it has been sent
		stop(errors.New("enough"))
		<-ctx.Done()
		return "", ctx.Err()
	})
	res, err := newCLI(t, model).Run(ctx, Spec{
		ID: "queued", Dir: t.TempDir(), Prompt: first, Profile: Read, Tools: []Tool{wait},
	}, h)
	if err != nil || res.Outcome != Stopped || !res.Session.Holds(first.ID) || !says(res.Session, second.ID) {
		t.Fatalf("result = %+v, %v", res, err)
	}
	if res.Session.Holds(second.ID) {
		t.Error("the conversation holds what was thrown away")
	}
}
