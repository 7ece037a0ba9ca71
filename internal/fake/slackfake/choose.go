package slackfake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Choose lets a user choose an option of a menu in a message, by its value, and sends the block_actions interaction.
// Errors are those of Press.
func (s *Server) Choose(ctx context.Context, user, channel, ts, actionID, value string) error {
	payload, to, err := s.act(user, channel, ts, func(raw json.RawMessage) (answer, error) {
		return option(raw, actionID, value)
	})
	if err == nil {
		err = s.interaction(ctx, to, payload)
	}
	if err != nil {
		return fmt.Errorf("choose %s of %s: %w", value, actionID, err)
	}
	return nil
}

// option finds a menu's option, as the action that choosing it is.
func option(raw json.RawMessage, actionID, value string) (answer, error) {
	menu, ok := element(raw, actionID)
	if !ok || menu["type"] != "static_select" {
		return nil, errors.New("no such menu")
	}
	options, _ := menu["options"].([]any)
	for _, o := range options {
		if o, ok := o.(map[string]any); ok && o["value"] == value {
			return answer{
				"type": menu["type"], "action_id": actionID, "block_id": menu["block_id"], "selected_option": o,
				"placeholder": menu["placeholder"],
			}, nil
		}
	}
	return nil, errors.New("no such option")
}
